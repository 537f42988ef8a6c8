// Names and values of header fields.
#include <catch2/catch.hpp>

#include <string>

#include "gateway/header_fields.h"

namespace stitchkit {

TEST_CASE("field names: tokens, byte by byte", "[fields]") {
  const std::string others = "!#$%&'*+-.^_`|~";
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
    INFO(byte);
    CHECK(isHttpToken(std::string("x") + c) == (letter || others.find(c) != std::string::npos));
  }
  CHECK_FALSE(isHttpToken(""));
}

TEST_CASE("field names: folding", "[fields]") {
  CHECK(lowerCaseAscii("X-A_b\xC3\x9C[@Z") == "x-a_b\xC3\x9C[@z");
  CHECK(foldedFieldName("X_Api-KEY") == "x-api-key");
  CHECK(isReservedField(foldedFieldName("Transfer_Encoding")));
  CHECK_FALSE(isReservedField("cookie"));
  CHECK_FALSE(isReservedField("authorization"));
}

TEST_CASE("field values: what may be in one", "[fields]") {
  for (int byte = 0; byte < 128; ++byte) {
    const std::string value = std::string("a") + static_cast<char>(byte) + "b";
    INFO(byte);
    CHECK(fieldValueFault(value).empty() == ((byte >= 0x20 && byte < 0x7F) || byte == '\t'));
  }
  for (const char* good : {"", "a", "a b", "a\tb", "\xC3\xBC", "\xC3\xBF", "\xC2\xA0", "\xC2\x80", "a\"\\"}) {
    INFO(good);
    CHECK(fieldValueFault(good).empty());
  }
  for (const char* bad :
       {" a", "a ", "\ta", "a\t", " ", "\t", "a\r\nb", "\xC4\x80", "\xE2\x82\xAC", "\xF0\x9F\x94\x91"}) {
    INFO(bad);
    CHECK_FALSE(fieldValueFault(bad).empty());
  }
}

TEST_CASE("field values: Latin-1 and back", "[fields]") {
  CHECK(latin1("a\xC3\xBC\xC2\x80\xC3\xBFz") == "a\xFC\x80\xFFz");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all += static_cast<char>(byte);
  }
  CHECK(latin1(utf8OfLatin1(all)) == all);
  CHECK(utf8OfLatin1("\xFC") == "\xC3\xBC");
}

}  // namespace stitchkit
