#include "codingtools/name_order.h"

#include <unicode/coll.h>
#include <unicode/locid.h>
#include <unicode/stringpiece.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

namespace stitchkit {

namespace {

constexpr std::size_t kPrefixCharacters = 8;
constexpr unsigned char kFirstPrintable = 0x20;
constexpr unsigned char kLastPrintable = 0x7E;

int compareUtf8(const icu::Collator& collator, std::string_view left, std::string_view right) {
  UErrorCode status = U_ZERO_ERROR;
  const auto piece = [](std::string_view text) {
    return icu::StringPiece(text.data(), static_cast<int32_t>(text.size()));
  };
  const UCollationResult result = collator.compareUTF8(piece(left), piece(right), status);
  return U_FAILURE(status) ? 0 : static_cast<int>(result);
}

std::unique_ptr<icu::Collator> makeCollator(icu::Collator::ECollationStrength strength) {
  UErrorCode status = U_ZERO_ERROR;
  std::unique_ptr<icu::Collator> collator(icu::Collator::createInstance(icu::Locale::getRoot(), status));
  if (U_FAILURE(status) || !collator) {
    return nullptr;
  }
  collator->setAttribute(UCOL_NORMALIZATION_MODE, UCOL_ON, status);
  collator->setStrength(strength);
  return U_FAILURE(status) ? nullptr : std::move(collator);
}

/// nullptr when ICU has no data. Comparing is const and thread-safe.
const icu::Collator* wholeCollator() {
  static const std::unique_ptr<const icu::Collator> kCollator = makeCollator(icu::Collator::TERTIARY);
  return kCollator.get();
}

}  // namespace

const NameOrder& NameOrder::instance() {
  static const NameOrder order;
  return order;
}

NameOrder::NameOrder() {
  const std::unique_ptr<icu::Collator> primary = makeCollator(icu::Collator::PRIMARY);
  const icu::Collator* const whole = wholeCollator();
  if (!primary || whole == nullptr) {
    return;
  }
  std::array<char, kLastPrintable - kFirstPrintable + 1> characters{};
  for (std::size_t i = 0; i < characters.size(); ++i) {
    characters[i] = static_cast<char>(kFirstPrintable + i);
  }
  const auto one = [](const char& character) { return std::string_view(&character, 1); };
  std::sort(characters.begin(), characters.end(),
            [&](const char& a, const char& b) { return compareUtf8(*whole, one(a), one(b)) < 0; });
  std::uint8_t rank = 0;
  std::uint8_t variant = 0;
  for (std::size_t i = 0; i < characters.size(); ++i) {
    const bool same = i > 0 && compareUtf8(*primary, one(characters[i - 1]), one(characters[i])) == 0;
    variant = same ? static_cast<std::uint8_t>(variant + 1) : std::uint8_t{0};
    rank = same ? rank : static_cast<std::uint8_t>(rank + 1);
    primary_[static_cast<unsigned char>(characters[i])] = rank;
    tertiary_[static_cast<unsigned char>(characters[i])] = variant;
  }
}

bool NameOrder::isSimple(std::string_view name) const {
  return std::all_of(name.begin(), name.end(), [&](char c) { return primary_[static_cast<unsigned char>(c)] != 0; });
}

int NameOrder::compareAscii(std::string_view left, std::string_view right) const {
  const std::size_t common = std::min(left.size(), right.size());
  int tertiary = 0;
  for (std::size_t i = 0; i < common; ++i) {
    const auto a = static_cast<unsigned char>(left[i]);
    const auto b = static_cast<unsigned char>(right[i]);
    if (primary_[a] != primary_[b]) {
      return primary_[a] - primary_[b];
    }
    tertiary = tertiary != 0 ? tertiary : tertiary_[a] - tertiary_[b];
  }
  return left.size() == right.size() ? tertiary : left.size() < right.size() ? -1 : 1;
}

int NameOrder::compare(std::string_view left, std::string_view right) const {
  int order = 0;
  if (isSimple(left) && isSimple(right)) {
    order = compareAscii(left, right);
  } else if (const icu::Collator* const collator = wholeCollator()) {
    order = compareUtf8(*collator, left, right);
  }
  return order != 0 ? order : left.compare(right);
}

std::uint64_t NameOrder::prefix(std::string_view name) const {
  if (!isSimple(name)) {
    return kNoPrefix;
  }
  std::uint64_t prefix = 0;
  for (std::size_t i = 0; i < kPrefixCharacters; ++i) {
    prefix = prefix << 8U | (i < name.size() ? primary_[static_cast<unsigned char>(name[i])] : 0U);
  }
  return prefix;
}

}  // namespace stitchkit
