// A pattern and a path: what the compiled pattern says, and what a matcher says that goes through all possibilities.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "codingtools/glob_pattern.h"
#include "rpc/base/utf8.h"
#include "tests/fuzz/fields.h"
#include "tests/fuzz/require.h"

namespace stitchkit {
namespace {

constexpr std::size_t kLongest = 400;  // of either: the matcher's time is their product, and a little more

bool continuesCharacter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// Whether the pattern matches the path, both from their beginnings on: a table of what is left of each, from the end.
bool matchesByTable(std::string_view pattern, std::string_view path) {
  const std::size_t width = path.size() + 1;
  std::vector<char> table((pattern.size() + 1) * width, 0);
  const auto at = [&](std::size_t inPattern, std::size_t inPath) -> char& { return table[inPattern * width + inPath]; };
  at(pattern.size(), path.size()) = 1;
  for (std::size_t p = pattern.size(); p-- > 0;) {
    const std::string_view left = pattern.substr(p);
    for (std::size_t t = path.size() + 1; t-- > 0;) {
      char& matched = at(p, t);
      if (left.starts_with("**/")) {
        matched = at(p + 3, t);
        for (std::size_t end = t; end < path.size(); ++end) {
          matched = static_cast<char>(matched | (path[end] == '/' && at(p + 3, end + 1)));
        }
      } else if (left.starts_with("*")) {
        const std::size_t stars = left.starts_with("**") ? 2 : 1;
        for (std::size_t end = t;; ++end) {
          matched = static_cast<char>(matched | at(p + stars, end));
          if (end == path.size() || (stars == 1 && path[end] == '/')) {
            break;
          }
        }
      } else if (t < path.size() && left.front() == '?') {
        std::size_t end = t + 1;
        while (end < path.size() && continuesCharacter(path[end])) {
          ++end;
        }
        matched = static_cast<char>(path[t] != '/' && at(p + 1, end));
      } else if (t < path.size()) {
        matched = static_cast<char>(path[t] == left.front() && at(p + 1, t + 1));
      }
    }
  }
  return at(0, 0) != 0;
}

}  // namespace
}  // namespace stitchkit

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stitchkit;
  const auto [pattern, anyPath] = fuzz::fields<2>({reinterpret_cast<const char*>(data), size});
  const Result<GlobPattern> glob = GlobPattern::compile(pattern);
  FUZZ_REQUIRE(!glob || isUtf8(pattern));
  if (!glob) {
    FUZZ_REQUIRE(glob.error().kind == ErrorKind::kBadRequest && !glob.error().hint.empty());
    FUZZ_REQUIRE(!isUtf8(pattern) || pattern.size() > kLongest);
    return 0;
  }
  const std::string path = toUtf8(anyPath);
  if (pattern.size() <= kLongest && path.size() <= kLongest) {
    FUZZ_REQUIRE(glob->matches(path) == matchesByTable(pattern, path));
  }
  return 0;
}
