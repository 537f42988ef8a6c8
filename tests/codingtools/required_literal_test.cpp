#include "codingtools/required_literal.h"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace stitchkit;

TEST_CASE("what an expression requires is found") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"abc", "abc"},
      {"[a-z]+_[0-9]{4}X", "X"},
      {"^needle$", "needle"},
      {"foo.*barbarbar", "barbarbar"},
      {"colou?r", "colo"},
      {"xa+y", "xa"},
      {"a{0,2}zz", "zz"},
      {"a{00}zz", "zz"},
      {"(?:needle)+", "needle"},
      {"(?P<name>NEEDLE)x", "NEEDLE"},
      {"(needle)?e", "e"},
      {"(needle){0}e", "e"},
      {"(needle)+{0}e", "e"},
      {"a\\x{2E}b", "a.b"},
      {"\\x{E9}\\x{20AC}\\x{1F600}", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
      {"e\xC3\xA9?", "e"},
      {"a{x", "a{x"},
      {"[\\]a]q", "q"},
      {"\\pLq", "q"},
      {"\\p{Greek}q", "q"},
  };
  for (const auto& [expression, literal] : cases) {
    CAPTURE(expression);
    CHECK(requiredLiterals(expression) == std::vector<std::string>{literal});
  }
}

TEST_CASE("where nothing is required, or it cannot be told, there is no literal") {
  for (const char* expression :
       {"",        "a|b*",     "(?:a|b?)", "a*",   "a?",   "(a)*", "[abc]", ".",          "\\d+",
        "(?i)abc", "(?i:abc)", "x(?i)abc", "(abc", "[abc", "a*?",  "a{0,}", "(a|b){0,3}", "1|2|3|4|5|6|7|8|9",
        "|a",      "a|"}) {
    CAPTURE(expression);
    CHECK(requiredLiterals(expression).empty());
  }
  const std::string deep(5000, '(');
  CHECK(requiredLiterals(deep + "a" + std::string(5000, ')')).empty());
}

TEST_CASE("one of the alternatives is required") {
  using Literals = std::vector<std::string>;
  CHECK(requiredLiterals("TODO|FIXME|(?:HACK|XXX)!") == Literals{"TODO", "FIXME", "HACK", "XXX"});
  CHECK(requiredLiterals("(foo|bar)[0-9]{5}") == Literals{"foo", "bar"});
  CHECK(requiredLiterals("(a|b)Q") == Literals{"Q"});
  CHECK(requiredLiterals("x(e|t)") == Literals{"x"});
}
