// Bytes as text: UTF-8 and what is put in place of the rest, base64, windows and previews that cut between characters.
// The first two bytes decide where is cut.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "codingtools/character_cut.h"
#include "codingtools/shell_preview.h"
#include "codingtools/text_window.h"
#include "rpc/base/base64.h"
#include "rpc/base/utf8.h"
#include "tests/fuzz/require.h"

namespace stitchkit {
namespace {

/// By RFC 3629's table, one byte after another.
bool isUtf8ByTable(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U; };
  for (std::size_t i = 0; i < bytes.size();) {
    const unsigned first = at(i);
    const unsigned low = first == 0xE0U ? 0xA0U : first == 0xF0U ? 0x90U : 0x80U;
    const unsigned high = first == 0xEDU ? 0x9FU : first == 0xF4U ? 0x8FU : 0xBFU;
    const std::size_t more = first < 0x80U                      ? 0
                             : first >= 0xC2U && first <= 0xDFU ? 1
                             : first >= 0xE0U && first <= 0xEFU ? 2
                             : first >= 0xF0U && first <= 0xF4U ? 3
                                                                : 4;
    if (more == 4 || (more > 0 && (at(i + 1) < low || at(i + 1) > high))) {
      return false;
    }
    for (std::size_t next = 2; next <= more; ++next) {
      if ((at(i + next) & 0xC0U) != 0x80U) {
        return false;
      }
    }
    i += more + 1;
  }
  return true;
}

void checkUtf8(const std::string& bytes) {
  const bool valid = isUtf8(bytes);
  FUZZ_REQUIRE(valid == isUtf8ByTable(bytes));
  const std::string text = toUtf8(bytes);
  FUZZ_REQUIRE(isUtf8(text) && toUtf8(text) == text);
  FUZZ_REQUIRE(valid == (text == bytes));
  FUZZ_REQUIRE(!valid || isUtf8(excerpt(bytes, bytes.size() / 2)));
}

void checkBase64(const std::string& bytes) {
  FUZZ_REQUIRE(decodeBase64(encodeBase64(bytes)) == bytes);
  // Only one text stands for some bytes.
  const auto decoded = decodeBase64(bytes);
  FUZZ_REQUIRE(!decoded || encodeBase64(*decoded) == bytes);
}

/// Windows one after another are the whole, each no larger than it may be and a character.
void checkWindows(const std::string& bytes, std::size_t most) {
  const ReadBytes read = [&](std::uint64_t offset, std::size_t count) -> Result<std::string> {
    return offset < bytes.size() ? bytes.substr(static_cast<std::size_t>(offset), count) : std::string();
  };
  std::string joined;
  for (std::uint64_t offset = 0;;) {
    const Result<TextWindow> window = textWindow(read, offset, most, Malformed::kReplaced);
    FUZZ_REQUIRE(window && isUtf8(window->text));
    FUZZ_REQUIRE(window->bytes <= std::max<std::size_t>(most, 1) + kCharacterReach);
    FUZZ_REQUIRE(window->end <= bytes.size() && window->truncated == (window->end < bytes.size()));
    joined += window->text;
    if (!window->truncated) {
      break;
    }
    FUZZ_REQUIRE(window->end > offset);
    offset = window->end;
  }
  FUZZ_REQUIRE(!isUtf8(bytes) || joined == bytes);
}

void checkPreview(std::string_view out, std::string_view err, std::size_t budget) {
  const ShellPreview preview = previewOf(out, err, budget);
  FUZZ_REQUIRE(isUtf8(preview.standardOutput) && isUtf8(preview.standardError));
  FUZZ_REQUIRE(preview.headBytes + preview.tailBytes + preview.omittedBytes == out.size() + err.size());
  FUZZ_REQUIRE(preview.headBytes + preview.tailBytes <= budget + 2 * kCharacterReach);
  FUZZ_REQUIRE(preview.omittedBytes != 0 ||
               (preview.standardOutput == toUtf8(out) && preview.standardError == toUtf8(err)));
}

}  // namespace
}  // namespace stitchkit

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stitchkit;
  if (size < 2) {
    return 0;
  }
  const std::string bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  checkUtf8(bytes);
  checkBase64(bytes);
  const std::size_t cut = std::min<std::size_t>(data[0], bytes.size());
  const std::size_t end = characterEnd(bytes, cut);
  FUZZ_REQUIRE(end >= cut && end <= std::min(bytes.size(), cut + kCharacterReach));
  FUZZ_REQUIRE(!isUtf8(bytes) || (isUtf8(bytes.substr(0, end)) && isUtf8(bytes.substr(end))));
  checkWindows(bytes, data[1]);
  checkPreview(std::string_view(bytes).substr(0, cut), std::string_view(bytes).substr(cut), data[1]);
  return 0;
}
