#include "codingtools/script_expression.h"

#include <re2/re2.h>
#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace stitchkit;

namespace {

struct Spelling {
  const char* pattern;
  const char* text;
  bool matches;
};

}  // namespace

TEST_CASE("what JavaScript writes and RE2 cannot read is rewritten") {
  const std::vector<Spelling> spellings{
      {"(?<year>\\d{4})-(?<month>\\d\\d)", "2026-11", true},
      {"a\\/b", "a/b", true},
      {"\\u00e9", "\xC3\xA9", true},
      {"\\ud83d\\ude00", "\xF0\x9F\x98\x80", true},
      {"\\u{1F600}", "\xF0\x9F\x98\x80", true},
      {"[\\u00e0-\\u00ff]", "\xC3\xA9", true},
      {"\\cJ", "\n", true},
      {"[\\cI]", "\t", true},
      {"a[^]b", "a\nb", true},
      {"a[]", "a", false},
      {"[[]x[\\]]", "[x]", true},
      {"[[:alpha:]]", "b", false},
      {"[[:alpha:]]", "a]", true},
      {"[(?=]", "(", true},
      {"\\(\\?=", "f(?=x)", true},
      {"a\\\\1b", "a\\1b", true},
      {"a\\sb",
       "a\xC2\xA0"
       "b",
       true},
      {"a\\sb",
       "a\x0B"
       "b",
       true},
      {"a[\\s]b",
       "a\xE2\x80\x83"
       "b",
       true},
      {"a\\Sb",
       "a\xC2\xA0"
       "b",
       false},
      {"a\\Sb", "axb", true},
      {"a[\\S]b", "a b", false},
      {"\\bword\\b", "a word.", true},
      {"[\\b]", "\b", true},
      {"\\x41\\x4", "Ax4", true},
      {"\\uZZ", "uZZ", true},
      {"\\a\\Q\\z", "aQz", true},
      {"\\-\\#\\ ", "-# ", true},
      {"\\c!", "\\c!", true},
      {"\\0", std::string_view("\0", 1).data(), false},
      {"(?:a|b)+c{2,3}$", "ababcc", true},
      {"\xC3\xA9\\\xC3\xA9", "\xC3\xA9\xC3\xA9", true},
      {"[^]]", "x]", true},
      {"a]b}", "a]b}", true},
  };
  for (const auto& [pattern, text, expected] : spellings) {
    CAPTURE(pattern, text);
    const Result<std::string> rewritten = toRe2Syntax(pattern);
    REQUIRE(rewritten.has_value());
    CAPTURE(*rewritten);
    const re2::RE2 expression(*rewritten, re2::RE2::Quiet);
    REQUIRE(expression.ok());
    CHECK(re2::RE2::PartialMatch(text, expression) == expected);
  }
}

TEST_CASE("what would need more than linear time is refused in words") {
  for (const char* pattern : {"(t)\\1", "(?<x>a)\\k<x>", "a(?=b)", "a(?!b)", "(?<=t)w", "(?<!t)w", "\\9"}) {
    CAPTURE(pattern);
    const Result<std::string> refused = toRe2Syntax(pattern);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().kind == ErrorKind::kBadRequest);
    CHECK_FALSE(refused.error().hint.empty());
    REQUIRE(refused.error().details.size() == 1);
    CHECK(std::get<std::string>(refused.error().details.front().second) == pattern);
  }
}

TEST_CASE("what is wrong in both spellings is RE2's to refuse") {
  for (const char* pattern : {"[a", "(", "a\\", "*", "a{2,1}", "[z-a]"}) {
    CAPTURE(pattern);
    const Result<std::string> rewritten = toRe2Syntax(pattern);
    REQUIRE(rewritten.has_value());
    CHECK_FALSE(re2::RE2(*rewritten, re2::RE2::Quiet).ok());
  }
}
