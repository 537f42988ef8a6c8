#include "codingtools/name_order.h"

#include <unicode/coll.h>
#include <unicode/locid.h>
#include <unicode/stringpiece.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace stitchkit;

namespace {

int sign(int value) {
  return (value > 0) - (value < 0);
}

std::unique_ptr<icu::Collator> americanCollator() {
  UErrorCode status = U_ZERO_ERROR;
  std::unique_ptr<icu::Collator> collator(icu::Collator::createInstance(icu::Locale::getUS(), status));
  collator->setAttribute(UCOL_NORMALIZATION_MODE, UCOL_ON, status);
  REQUIRE(U_SUCCESS(status));
  return collator;
}

int compareByIcu(const icu::Collator& collator, const std::string& left, const std::string& right) {
  UErrorCode status = U_ZERO_ERROR;
  const int order = collator.compareUTF8(left, right, status);
  return order != 0 ? order : sign(left.compare(right));
}

std::string randomName(std::mt19937& random, const std::vector<std::string>& parts, std::size_t most) {
  std::string name;
  for (std::size_t i = random() % (most + 1); i > 0; --i) {
    name += parts[random() % parts.size()];
  }
  return name;
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end(),
            [](const auto& a, const auto& b) { return NameOrder::instance().compare(a, b) < 0; });
  return names;
}

void compareWithIcu(const std::vector<std::string>& parts, std::size_t most, int rounds) {
  const auto collator = americanCollator();
  const NameOrder& order = NameOrder::instance();
  std::mt19937 random(4);
  for (int i = 0; i < rounds; ++i) {
    const std::string left = randomName(random, parts, most);
    const std::string right = random() % 4 == 0 ? left + randomName(random, parts, 1) : randomName(random, parts, most);
    const int expected = compareByIcu(*collator, left, right);
    CAPTURE(left, right);
    REQUIRE(sign(order.compare(left, right)) == expected);
    const std::uint64_t a = order.prefix(left);
    const std::uint64_t b = order.prefix(right);
    if (a != NameOrder::kNoPrefix && b != NameOrder::kNoPrefix && a != b) {
      REQUIRE((a < b ? -1 : 1) == expected);
    }
  }
}

}  // namespace

TEST_CASE("names stand as a directory listing shows them") {
  CHECK(sorted({"b", "A", "a", "a-b", "B", "_"}) == std::vector<std::string>{"_", "a", "A", "a-b", "b", "B"});
  CHECK(sorted({"b", "A", "a", "B", "aa", "Aa", "aB", "Ab"}) ==
        std::vector<std::string>{"a", "A", "aa", "Aa", "aB", "Ab", "b", "B"});
  CHECK(sorted({"\xC3\xA9", "e\xCC\x81", "e", "f"}) == std::vector<std::string>{"e", "e\xCC\x81", "\xC3\xA9", "f"});
  CHECK(sorted({"1", "\xD1\x8F", "b", "\xF0\x9F\x98\x80"}) ==
        std::vector<std::string>{"\xF0\x9F\x98\x80", "1", "b", "\xD1\x8F"});
}

TEST_CASE("names of ASCII stand in ICU's order without asking it") {
  std::vector<std::string> parts;
  for (char c = 1; c < 127; ++c) {
    parts.emplace_back(1, c);
    if (c >= '0') {
      parts.emplace_back(1, c);
    }
  }
  compareWithIcu(parts, 12, 200000);
  compareWithIcu({"a", "A", "b", "B", "-", "1"}, 10, 200000);
}

TEST_CASE("names of any text stand in ICU's order") {
  compareWithIcu({"a", "A", "z", "-", ".", "\x01", "\xC3\xA9", "e\xCC\x81", "\xCC\xA3", "\xC3\x9F", "\xE4\xB8\xAD",
                  "\xF0\x9F\x98\x80", "\xD8\xA3", "\xE3\x81\x82"},
                 6, 100000);
}

TEST_CASE("names that are not UTF-8 have a place of their own") {
  const NameOrder& order = NameOrder::instance();
  const std::vector<std::string> names = sorted({"\xFF", "\xFE", "a\xFF", "a", "\xEF\xBF\xBD", "z", "\xC3"});
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t j = 0; j < names.size(); ++j) {
      CAPTURE(i, j);
      CHECK(sign(order.compare(names[i], names[j])) == sign(static_cast<int>(i) - static_cast<int>(j)));
    }
  }
}
