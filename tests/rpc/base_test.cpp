#include <catch2/catch.hpp>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "rpc/base/base64.h"
#include "rpc/base/utf8.h"

namespace stitchkit {
namespace {

std::string randomBytes(std::mt19937& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random());
  }
  return bytes;
}

/// The plainest possible encoder, to compare with.
std::string plainBase64(const std::string& bytes) {
  static constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += i + k > bytes.size() ? '=' : kAlphabet[group >> (18 - 6 * k) & 63U];
    }
  }
  return text;
}

const std::string kMark = "\xEF\xBF\xBD";

std::string marks(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += kMark;
  }
  return text;
}

}  // namespace

TEST_CASE("base64: the vectors of RFC 4648", "[base64]") {
  const std::vector<std::pair<std::string, std::string>> vectors = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
      {"\xFB\xFF\xFE", "+//+"},
  };
  for (const auto& [bytes, text] : vectors) {
    CHECK(encodeBase64(bytes) == text);
    CHECK(decodeBase64(text) == bytes);
  }
}

TEST_CASE("base64: only the canonical text is read", "[base64]") {
  const std::vector<std::string> refused = {
      "A",
      "AA",
      "AAA",
      "AAAAA",
      "=",
      "==",
      "===",
      "====",
      "A===",
      "Zh==",
      "Zm9=",
      "Zg=",
      "Zg",
      "Zg==Zg==",
      "Zg=A",
      "=AAA",
      "A=AA",
      "AA=A",
      "Zm9v\n",
      "Zm 9v",
      " Zm9v",
      "Zm9v====",
      "Zm9-",
      "_m9v",
      "Zm9v-AAA",
      "-AAA",
      std::string("AAA\0", 4),
      "\xC3\xA9"
      "AA",
      "Zm9vZh==",
      "AAA*",
  };
  for (const std::string& text : refused) {
    INFO(text);
    CHECK_FALSE(decodeBase64(text).has_value());
  }
}

TEST_CASE("base64: every single text of one group means its own bytes or nothing", "[base64]") {
  // All texts `ab==`: exactly those with four zero bits are canonical, and each of the 256 bytes has one.
  static const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  int read = 0;
  for (const char a : alphabet) {
    for (const char b : alphabet) {
      const std::string text = {a, b, '=', '='};
      const auto bytes = decodeBase64(text);
      read += bytes ? 1 : 0;
      if (bytes && encodeBase64(*bytes) != text) {
        FAIL(text);
      }
    }
  }
  CHECK(read == 256);
}

TEST_CASE("base64: random round trips up to 5 MiB", "[base64]") {
  std::mt19937 random(7);
  const std::string source = randomBytes(random, 5U << 20U);
  std::vector<std::size_t> sizes;
  for (std::size_t size = 0; size < 70; ++size) {
    sizes.push_back(size);
  }
  const std::size_t piece = 3U << 20U;  // OpenSSL is fed with pieces of so many bytes
  for (const std::size_t size : {piece - 1, piece, piece + 1, source.size()}) {
    sizes.push_back(size);
  }
  for (const std::size_t size : sizes) {
    const std::string bytes = source.substr(source.size() - size);
    const std::string text = encodeBase64(bytes);
    if (text != plainBase64(bytes) || decodeBase64(text) != bytes) {
      FAIL(size);
    }
  }
  SUCCEED();
}

TEST_CASE("base64: a fault deep in a large text is found", "[base64]") {
  std::string text = encodeBase64(std::string(5U << 20U, 'x'));
  for (const std::size_t at : {std::size_t{0}, std::size_t{4U << 20U}, (std::size_t{4} << 20U) - 1, text.size() - 3}) {
    const char kept = std::exchange(text[at], '\n');
    CHECK_FALSE(decodeBase64(text).has_value());
    text[at] = kept;
  }
  text.insert(4U << 20U, "AA==");
  CHECK_FALSE(decodeBase64(text).has_value());
}

TEST_CASE("UTF-8: what TextDecoder makes of ill-formed bytes", "[utf8]") {
  const std::vector<std::pair<std::string, std::string>> vectors = {
      {"\xFF\xFE", marks(2)},
      {"ok\xFF\xFE\xC3", "ok" + marks(3)},
      {"\xED\xA0\x80", marks(3)},  // a surrogate
      {"\xED\xBF\xBF", marks(3)},
      {"\xF0\x80\x80", marks(3)},  // over-long
      {"\xF0\x80\x80\x80", marks(4)},
      {"\xC0\x80", marks(2)},
      {"\xC1\xBF", marks(2)},
      {"\xE0\x80\x80", marks(3)},
      {"\xE0\x9F\xBF", marks(3)},
      {"\xF4\x90\x80\x80", marks(4)},  // beyond U+10FFFF
      {"\xF5\x80\x80\x80", marks(4)},
      {"\xF8\x88\x80\x80\x80", marks(5)},
      {"\xC3", marks(1)},  // cut off
      {"\xE2\x82", marks(1)},
      {"\xF0\x9F\x98", marks(1)},
      {"\xF0\x9F", marks(1)},
      {"\xE2\x82"
       "A",
       marks(1) + "A"},
      {"\xF0\x9F\x98"
       "A",
       marks(1) + "A"},
      {"\xE2\x82\xE2\x82\xAC", marks(1) + "\xE2\x82\xAC"},
      {"\x80", marks(1)},
      {"\xBF\xBF", marks(2)},
      // Unicode 15, tables 3-8, 3-9 and 3-11
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", marks(8) + "A"},
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", marks(8) + "A"},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", marks(4) + "A"},
  };
  for (const auto& [bytes, text] : vectors) {
    CHECK(toUtf8(bytes) == text);
    CHECK_FALSE(isUtf8(bytes));
    CHECK(isUtf8(toUtf8(bytes)));
    // The same behind and before ASCII of any length: the fast path over words must not change it.
    for (std::size_t pad = 1; pad < 18; ++pad) {
      const std::string ascii(pad, 'a');
      if (toUtf8(ascii + bytes + ascii) != ascii + text + ascii || isUtf8(ascii + bytes + ascii)) {
        FAIL(pad << " " << text);
      }
    }
  }
}

TEST_CASE("UTF-8: what is well-formed stays as it is", "[utf8]") {
  const std::vector<std::string> wellFormed = {
      "",
      "plain",
      std::string("a\0b", 3),
      "\x7F",
      "\xC2\x80",
      "\xDF\xBF",
      "\xE0\xA0\x80",
      "\xED\x9F\xBF",
      "\xEE\x80\x80",
      "\xEF\xBF\xBD",
      "\xEF\xBF\xBF",
      "\xEF\xBB\xBF mark",
      "\xF0\x90\x80\x80",
      "\xF4\x8F\xBF\xBF",
      "eight by\xE2\x82\xAC eight by\xF0\x9F\x98\x80",
  };
  for (const std::string& text : wellFormed) {
    CHECK(isUtf8(text));
    CHECK(toUtf8(text) == text);
  }
}

TEST_CASE("UTF-8: any bytes become UTF-8, and each code point alone survives", "[utf8]") {
  std::mt19937 random(11);
  for (int round = 0; round < 20000; ++round) {
    const std::string bytes = randomBytes(random, random() % 24);
    const std::string text = toUtf8(bytes);
    if (!isUtf8(text) || (isUtf8(bytes) != (text == bytes))) {
      FAIL(round);
    }
  }
  for (std::uint32_t point = 0x80; point <= 0x10FFFF; ++point) {
    const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
    std::string text;
    if (point < 0x800) {
      text = {static_cast<char>(0xC0U | point >> 6U), static_cast<char>(0x80U | (point & 63U))};
    } else if (point < 0x10000) {
      text = {static_cast<char>(0xE0U | point >> 12U), static_cast<char>(0x80U | (point >> 6U & 63U)),
              static_cast<char>(0x80U | (point & 63U))};
    } else {
      text = {static_cast<char>(0xF0U | point >> 18U), static_cast<char>(0x80U | (point >> 12U & 63U)),
              static_cast<char>(0x80U | (point >> 6U & 63U)), static_cast<char>(0x80U | (point & 63U))};
    }
    if (isUtf8(text) == surrogate) {
      FAIL(point);
    }
  }
  SUCCEED();
}

TEST_CASE("UTF-8: an excerpt ends between characters", "[utf8]") {
  CHECK(excerpt("", 3).empty());
  CHECK(excerpt("abc", 3) == "abc");
  CHECK(excerpt("abcd", 3) == "abc...");
  const std::string euro = "\xE2\x82\xAC";
  CHECK(excerpt(euro + euro, 2) == euro + euro);
  CHECK(excerpt(euro + euro, 1) == euro + "...");
  CHECK(excerpt("\xFF\xFF\xE2\x82", 2) == "\xFF\xFF...");
  CHECK(excerpt("\xFF\xFF\xE2\x82", 3) == "\xFF\xFF\xE2\x82");
}

}  // namespace stitchkit
