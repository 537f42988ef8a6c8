// A regular expression in JavaScript's spelling and a text: the search, which has several ways to go and skips what
// cannot match, against each line by itself.
#include <re2/re2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codingtools/line_search.h"
#include "codingtools/required_literal.h"
#include "codingtools/script_expression.h"
#include "rpc/base/utf8.h"
#include "tests/fuzz/fields.h"
#include "tests/fuzz/require.h"

namespace stitchkit {
namespace {

constexpr std::size_t kLongestExpression = 200;  // RE2 makes tens of thousands of steps of what a short one repeats

std::vector<std::string_view> linesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) {
      return lines;
    }
    begin = end + 1;
  }
}

bool stands(const re2::RE2& expression, std::string_view text) {
  return expression.Match({text.data(), text.size()}, 0, text.size(), re2::RE2::UNANCHORED, nullptr, 0);
}

/// `$` also before a carriage return at the line's end.
bool matchesLine(const re2::RE2& expression, std::string_view line) {
  return stands(expression, line) || (expression.pattern().find('$') != std::string::npos && line.ends_with('\r') &&
                                      stands(expression, line.substr(0, line.size() - 1)));
}

void checkSearch(const std::string& rewritten, const LineSearch& search, const std::string& text) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_never_nl(true);
  const re2::RE2 expression("(?m)" + rewritten, options);
  FUZZ_REQUIRE(expression.ok());
  const std::vector<std::string> literals = requiredLiterals(rewritten);
  FUZZ_REQUIRE(literals.size() <= kMostRequiredLiterals);
  const std::vector<FoundLine> found = search.search(text, text.size() + 1).lines;
  std::size_t next = 0;
  std::size_t number = 0;
  for (const std::string_view line : linesOf(text)) {
    ++number;
    if (!matchesLine(expression, line)) {
      continue;
    }
    FUZZ_REQUIRE(literals.empty() || std::any_of(literals.begin(), literals.end(), [&](const std::string& literal) {
                   return !literal.empty() && line.find(literal) != std::string_view::npos;
                 }));
    FUZZ_REQUIRE(next < found.size() && found[next].number == number);
    FUZZ_REQUIRE(std::string_view(text).substr(found[next].begin, found[next].end - found[next].begin) == line);
    ++next;
  }
  FUZZ_REQUIRE(next == found.size());
}

}  // namespace
}  // namespace stitchkit

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stitchkit;
  const auto [anyPattern, anyText] = fuzz::fields<2>({reinterpret_cast<const char*>(data), size});
  const std::string pattern = toUtf8(anyPattern.substr(0, kLongestExpression));
  const Result<LineSearch> search = LineSearch::compile(pattern, LineSearch::Syntax::kExpression);
  const Result<std::string> rewritten = toRe2Syntax(pattern);
  if (!search) {
    FUZZ_REQUIRE(search.error().kind == ErrorKind::kBadRequest && !search.error().hint.empty());
    return 0;
  }
  FUZZ_REQUIRE(rewritten.has_value());
  checkSearch(*rewritten, *search, toUtf8(anyText));
  return 0;
}
