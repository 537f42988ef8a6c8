// A file's content, the text to replace and the new one: the bytes outside stay, and nothing else happens.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "codingtools/literal_edit.h"
#include "codingtools/literal_finder.h"
#include "tests/fuzz/fields.h"
#include "tests/fuzz/require.h"

namespace stitchkit {
namespace {

struct Wanted {
  std::string content;
  std::size_t replacements = 0;
};

Wanted replaceAll(std::string_view content, std::string_view oldText, std::string_view newText) {
  Wanted wanted;
  for (;;) {
    const std::size_t at = content.find(oldText);
    wanted.content += content.substr(0, at);
    if (at == std::string_view::npos) {
      return wanted;
    }
    wanted.content += newText;
    ++wanted.replacements;
    content.remove_prefix(at + oldText.size());
  }
}

void checkFinder(std::string_view text, std::string_view needle) {
  const LiteralFinder finder{std::string(needle)};
  for (std::size_t from = 0; from <= text.size() && from < 8; ++from) {
    FUZZ_REQUIRE(finder.find(text, from) == text.find(needle, from));
  }
}

}  // namespace
}  // namespace stitchkit

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stitchkit;
  const auto [oldText, newText, content] = fuzz::fields<3>({reinterpret_cast<const char*>(data), size});
  checkFinder(content, oldText);
  if (oldText.empty()) {
    return 0;
  }
  const Wanted wanted = replaceAll(content, oldText, newText);
  for (const bool all : {false, true}) {
    const Result<Edited> edited = replaceLiteral(content, oldText, newText, all);
    if (wanted.replacements == 0 || (wanted.replacements > 1 && !all)) {
      FUZZ_REQUIRE(!edited);
      const Error& error = edited.error();
      FUZZ_REQUIRE(error.kind == (wanted.replacements == 0 ? ErrorKind::kNotFound : ErrorKind::kConflict));
      FUZZ_REQUIRE(error.details.at(0).first == "occurrences");
      FUZZ_REQUIRE(std::get<std::int64_t>(error.details.at(0).second) ==
                   static_cast<std::int64_t>(wanted.replacements));
    } else {
      FUZZ_REQUIRE(edited && edited->content == wanted.content && edited->replacements == wanted.replacements);
    }
  }
  return 0;
}
