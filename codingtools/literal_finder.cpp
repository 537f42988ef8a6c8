#include "codingtools/literal_finder.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace stitchkit {

namespace {

/// The most frequent bytes, most frequent first.
constexpr std::string_view kFrequent =
    " etanoirslcdupm\nhfg.,_=()bvy\"-;/wk:'x0E1TS*I{}ARNCLD>P2<OMqUF[]zBj3$#&4+V856WH@G|!97K?%Y\\`XQJZ^~\t\r";

constexpr std::array<std::uint8_t, 256> makeRarities() {
  std::array<std::uint8_t, 256> rarities{};
  rarities.fill(255);
  for (int continuation = 0x80; continuation < 0xC0; ++continuation) {
    rarities[static_cast<std::size_t>(continuation)] = 150;
  }
  for (std::size_t i = 0; i < kFrequent.size(); ++i) {
    rarities[static_cast<unsigned char>(kFrequent[i])] = static_cast<std::uint8_t>(2 * i);
  }
  return rarities;
}

constexpr auto kRarities = makeRarities();

std::size_t findByParts(std::string_view text, std::size_t from, const std::string& needle) noexcept {
  if (text.empty()) {
    return needle.empty() ? from : std::string_view::npos;  // it may have no address, which memmem() must not get
  }
  const void* const found = ::memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

#ifdef __x86_64__
struct Search {
  std::string_view text;
  const std::string& needle;
  std::size_t first;
  std::size_t second;
};

/// Both say where the needle stands, or -1 and, in `from`, from where on the text is too short for whole vectors.
__attribute__((target("avx2"))) std::ptrdiff_t findByWideVectors(const Search& search, std::size_t& from) noexcept {
  constexpr std::size_t kWidth = 32;
  const __m256i first = _mm256_set1_epi8(search.needle[search.first]);
  const __m256i second = _mm256_set1_epi8(search.needle[search.second]);
  const char* const text = search.text.data();
  const std::size_t reach = search.needle.size() + kWidth;
  for (; from + reach <= search.text.size(); from += kWidth) {
    const auto* const left = reinterpret_cast<const __m256i*>(text + from + search.first);
    const auto* const right = reinterpret_cast<const __m256i*>(text + from + search.second);
    const __m256i both = _mm256_and_si256(_mm256_cmpeq_epi8(first, _mm256_loadu_si256(left)),
                                          _mm256_cmpeq_epi8(second, _mm256_loadu_si256(right)));
    for (auto mask = static_cast<std::uint32_t>(_mm256_movemask_epi8(both)); mask != 0; mask &= mask - 1) {
      const std::size_t place = from + static_cast<std::size_t>(std::countr_zero(mask));
      if (std::memcmp(text + place, search.needle.data(), search.needle.size()) == 0) {
        return static_cast<std::ptrdiff_t>(place);
      }
    }
  }
  return -1;
}

std::ptrdiff_t findByVectors(const Search& search, std::size_t& from) noexcept {
  constexpr std::size_t kWidth = 16;
  const __m128i first = _mm_set1_epi8(search.needle[search.first]);
  const __m128i second = _mm_set1_epi8(search.needle[search.second]);
  const char* const text = search.text.data();
  const std::size_t reach = search.needle.size() + kWidth;
  for (; from + reach <= search.text.size(); from += kWidth) {
    const auto* const left = reinterpret_cast<const __m128i*>(text + from + search.first);
    const auto* const right = reinterpret_cast<const __m128i*>(text + from + search.second);
    const __m128i both =
        _mm_and_si128(_mm_cmpeq_epi8(first, _mm_loadu_si128(left)), _mm_cmpeq_epi8(second, _mm_loadu_si128(right)));
    for (auto mask = static_cast<std::uint32_t>(_mm_movemask_epi8(both)); mask != 0; mask &= mask - 1) {
      const std::size_t place = from + static_cast<std::size_t>(std::countr_zero(mask));
      if (std::memcmp(text + place, search.needle.data(), search.needle.size()) == 0) {
        return static_cast<std::ptrdiff_t>(place);
      }
    }
  }
  return -1;
}
#endif

}  // namespace

unsigned byteRarity(char byte) noexcept {
  return kRarities[static_cast<unsigned char>(byte)];
}

LiteralFinder::LiteralFinder(std::string needle) : needle_(std::move(needle)) {
  if (needle_.size() < 2) {
    return;
  }
  second_ = 1;
  const auto rarity = [&](std::size_t offset) { return byteRarity(needle_[offset]); };
  if (rarity(second_) > rarity(first_)) {
    std::swap(first_, second_);
  }
  for (std::size_t i = 2; i < needle_.size(); ++i) {
    if (rarity(i) > rarity(first_)) {
      second_ = std::exchange(first_, i);
    } else if (rarity(i) > rarity(second_)) {
      second_ = i;
    }
  }
}

std::size_t LiteralFinder::find(std::string_view text, std::size_t from) const noexcept {
  if (from > text.size() || text.size() - from < needle_.size()) {
    return std::string_view::npos;
  }
  if (needle_.size() == 1) {
    const void* const found = std::memchr(text.data() + from, needle_[0], text.size() - from);
    return found == nullptr ? std::string_view::npos
                            : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
  }
#ifdef __x86_64__
  if (needle_.size() > 1) {
    static const bool kWide = __builtin_cpu_supports("avx2") != 0;
    const Search search{text, needle_, first_, second_};
    std::ptrdiff_t found = kWide ? findByWideVectors(search, from) : -1;
    found = found < 0 ? findByVectors(search, from) : found;
    if (found >= 0) {
      return static_cast<std::size_t>(found);
    }
  }
#endif
  return findByParts(text, from, needle_);
}

}  // namespace stitchkit
