#include "codingtools/literal_finder.h"

#include <catch2/catch.hpp>

#include <random>
#include <string>

using namespace stitchkit;

TEST_CASE("a literal is found where it stands, whatever stands around it") {
  std::mt19937 random(5);
  const std::string letters = "aab_XY\n\xC3\xA9";
  const auto text = [&](std::size_t length) {
    std::string made(length, ' ');
    for (char& c : made) {
      c = letters[random() % (random() % 2 == 0 ? 2 : letters.size())];
    }
    return made;
  };
  for (int i = 0; i < 100000; ++i) {
    const std::string haystack = text(random() % 200);
    const LiteralFinder finder(text(random() % (i % 10 == 0 ? 40 : 4)));
    const std::size_t from = random() % 50;
    CAPTURE(haystack, finder.needle(), from);
    REQUIRE(finder.find(haystack, from) == haystack.find(finder.needle(), from));
  }
}

TEST_CASE("in a text without an address stands nothing but the empty literal") {
  CHECK(LiteralFinder("a").find({}, 0) == std::string_view::npos);
  CHECK(LiteralFinder("").find({}, 0) == 0);
}
