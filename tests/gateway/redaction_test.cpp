// Injected values in what comes back: gone in every form that is promised, and nothing else is touched.
#include "gateway/redaction.h"

#include <catch2/catch.hpp>

#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "gateway/header_fields.h"
#include "rpc/base/base64.h"

namespace stitchkit {
namespace {

using Strings = std::vector<std::string>;

Redactor redactorOf(const std::string& value) {
  return Redactor({{"x-key", value}});
}

Redactor redactorOfAuthorization(const std::string& value) {
  return Redactor({{"authorization", value}});
}

std::string stars(std::size_t count) {
  return std::string(count, '*');
}

/// Redacts `before + form + after` and expects that all of `form` and nothing else has become asterisks.
void expectGone(const Redactor& redactor, const std::string& before, const std::string& form,
                const std::string& after) {
  std::string text = before + form + after;
  INFO("text: " << text);
  CHECK(redactor.finds(text));
  CHECK(redactor.redact(text));
  CHECK(text == before + stars(form.size()) + after);
  CHECK_FALSE(redactor.finds(text));
}

void expectUntouched(const Redactor& redactor, const std::string& text) {
  std::string copy = text;
  INFO("text: " << text);
  CHECK_FALSE(redactor.finds(text));
  CHECK_FALSE(redactor.redact(copy));
  CHECK(copy == text);
}

std::string percent(const std::string& text, bool upper, bool (*encodes)(unsigned char)) {
  const char* digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (encodes(byte)) {
      out += {'%', digits[byte >> 4], digits[byte & 15]};
    } else {
      out += c;
    }
  }
  return out;
}

bool isUnreserved(unsigned char byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte != 0 && std::string("-_.~").find(static_cast<char>(byte)) != std::string::npos);
}

bool isReserved(unsigned char byte) {
  return !isUnreserved(byte);
}

bool isAny(unsigned char) {
  return true;
}

std::string jsonUnicode(const std::string& text) {
  const char* digits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += "\\u00";
    out += {digits[byte >> 4], digits[byte & 15]};
  }
  return out;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string urlSafe(const std::string& base64) {
  return replaced(replaced(base64, "+", "-"), "/", "_");
}

std::string unpadded(std::string base64) {
  base64.erase(base64.find_last_not_of('=') + 1);
  return base64;
}

std::string wrapped(const std::string& text, std::size_t width, const std::string& lineEnd) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += width) {
    out += (at == 0 ? "" : lineEnd) + text.substr(at, width);
  }
  return out;
}

/// No three bytes of the secret can be read from base64 text any more, wherever its groups begin.
bool base64Shows(const std::string& text, const std::string& secret) {
  for (std::size_t skip = 0; skip < 4 && skip < text.size(); ++skip) {
    std::string standard = replaced(replaced(text.substr(skip), "-", "+"), "_", "/");
    for (char& c : standard) {
      c = c == '*' ? 'A' : c;  // any character: what stood there is lost
    }
    standard = unpadded(standard);
    standard.resize(standard.size() / 4 * 4);
    const std::string bytes = decodeBase64(standard).value_or("");
    for (std::size_t at = 0; at + 3 <= secret.size(); ++at) {
      if (bytes.find(secret.substr(at, 3)) != std::string::npos) {
        return true;
      }
    }
  }
  return false;
}

// Holds characters of all sorts: in base64 both that differ between the alphabets.
const std::string kSecret = "sk-ab/c+d\"e\\f?>~=% 9";

}  // namespace

TEST_CASE("redaction: nothing is injected, nothing is found", "[redaction]") {
  expectUntouched(Redactor(), "text");
  expectUntouched(Redactor(std::vector<HeaderField>{}), "text");
  expectUntouched(redactorOf(""), "text with  nothing");
  std::string empty;
  CHECK_FALSE(redactorOf("a").redact(empty));
  CHECK_FALSE(redactorOf("a").finds(""));
}

TEST_CASE("redaction: the value as it is", "[redaction]") {
  const Redactor redactor = redactorOf(kSecret);
  expectGone(redactor, "", kSecret, "");
  expectGone(redactor, "before ", kSecret, " after");
  expectGone(redactor, std::string("\0\xFF\r\n", 4), kSecret, std::string("\0", 1));
  std::string twice = kSecret + kSecret + "-" + kSecret;
  CHECK(redactor.redact(twice));
  CHECK(twice == stars(2 * kSecret.size()) + "-" + stars(kSecret.size()));
  expectUntouched(redactor, kSecret.substr(1));
  expectUntouched(redactor, kSecret.substr(0, kSecret.size() - 1));
  expectUntouched(redactor, "SK-AB");
  expectUntouched(redactor, "s");
}

TEST_CASE("redaction: short values are looked for, too", "[redaction]") {
  std::string text = "k=1, K=1k";
  CHECK(redactorOf("k").redact(text));
  CHECK(text == "*=1, K=1*");
  text = "k";
  CHECK(redactorOf("k").redact(text));
  CHECK(text == "*");
  text = "abcab";
  CHECK(redactorOf("ab").redact(text));
  CHECK(text == "**c**");
  text = "1111";
  CHECK(redactorOf("1").redact(text));
  CHECK(text == "****");
}

TEST_CASE("redaction: occurrences that overlap", "[redaction]") {
  std::string text = "xababay";
  CHECK(redactorOf("aba").redact(text));
  CHECK(text == "x*****y");
  text = "aaaa-aa";
  CHECK(redactorOf("aaa").redact(text));
  CHECK(text == "****-aa");
  // Of several values: a long one that begins before a short one has been found.
  text = "abcabdabcx";
  CHECK(Redactor({{"a", "bc"}, {"b", "abcabd"}}).redact(text));
  CHECK(text == "******a**x");
  text = "12345678";
  CHECK(Redactor({{"a", "234"}, {"b", "456"}, {"c", "5"}}).redact(text));
  CHECK(text == "1*****78");
  text = "she sells hers";
  CHECK(Redactor({{"a", "he"}, {"b", "she"}, {"c", "hers"}, {"d", "his"}}).redact(text));
  CHECK(text == "*** sells ****");
}

TEST_CASE("redaction: percent-encoded, whichever characters are", "[redaction]") {
  const Redactor redactor = redactorOf(kSecret);
  for (const bool upper : {true, false}) {
    expectGone(redactor, "?key=", percent(kSecret, upper, isAny), "&x=%41");
    expectGone(redactor, "?key=", percent(kSecret, upper, isReserved), "&x=1");
  }
  for (std::size_t i = 0; i < kSecret.size(); ++i) {
    const std::string one = kSecret.substr(0, i) + percent(kSecret.substr(i, 1), true, isAny) + kSecret.substr(i + 1);
    expectGone(redactor, "%", one, "%");
  }
  expectGone(redactor, "a+", replaced(percent(kSecret, true, isReserved), "%20", "+"), "+b");
  expectGone(redactorOf("Bearer token"), "", "Bearer+token", "");
  expectUntouched(redactorOf("Bearer token"), "Bearer-token Bearer%2Btoken Bearer++token");
  expectUntouched(redactorOf("a+b"), "a b");
  expectUntouched(redactor, "%73%6");
  // An encoder that leaves the value's own percent signs alone.
  expectGone(redactorOf("100%41 of {x}"), "", "100%41%20of%20%7Bx%7D", "");
  expectGone(redactorOf("100%41 of {x}"), "", "100%2541%20of%20{x}", "");
  expectGone(redactorOf("100%41 of {x}"), "", "100%41 of {x}", "");
  // Twice.
  expectGone(redactor, "u=", percent(percent(kSecret, true, isReserved), true, isReserved), "");
}

TEST_CASE("redaction: base64 of both alphabets at every alignment", "[redaction]") {
  for (const std::string& secret : Strings{kSecret, "s3cr3t", "s3cr3ts", "s3cr3tss", "abc", "\xFF\xFE\xFD\xFC"}) {
    const Redactor redactor = redactorOf(secret);
    expectGone(redactor, "key: ", encodeBase64(secret), " end");
    expectGone(redactor, "key: ", unpadded(encodeBase64(secret)), " end");
    expectGone(redactor, "key: ", urlSafe(encodeBase64(secret)), ".end");
    expectGone(redactor, "key: ", urlSafe(unpadded(encodeBase64(secret))), ".end");
    for (std::size_t before = 0; before < 7; ++before) {
      for (std::size_t after = 0; after < 4; ++after) {
        const std::string plain =
            std::string("user:??").substr(0, before) + secret + std::string("~?>").substr(0, after);
        for (const std::string& form :
             {encodeBase64(plain), urlSafe(encodeBase64(plain)), unpadded(encodeBase64(plain)),
              wrapped(encodeBase64(plain), 76, "\r\n"), wrapped(encodeBase64(plain), 5, "\n"),
              wrapped(encodeBase64(plain), 3, "\r\n   ")}) {
          std::string text = "<" + form + ">";
          INFO(secret << " " << before << " " << after << " " << text);
          CHECK(redactor.finds(text));
          CHECK(redactor.redact(text));
          REQUIRE(text.size() == form.size() + 2);
          CHECK(text.front() == '<');
          CHECK(text.back() == '>');
          CHECK_FALSE(base64Shows(replaced(replaced(text.substr(1, form.size()), "\r", ""), "\n", ""), secret));
          // Whole groups before and after the secret stay.
          CHECK(text.substr(1, before / 3 * 4 > 5 ? 3 : 0) == form.substr(0, before / 3 * 4 > 5 ? 3 : 0));
        }
      }
    }
  }
}

TEST_CASE("redaction: of base64 only the characters that hold the secret", "[redaction]") {
  // Bytes 6 to 11 of 18: characters 8 to 15 exactly.
  std::string text = encodeBase64("prefixs3cr3tsuffix");
  const std::string whole = text;
  CHECK(redactorOf("s3cr3t").redact(text));
  CHECK(text == whole.substr(0, 8) + stars(8) + whole.substr(16));
  // Bytes 1 to 6: their bits lie in characters 1 to 9.
  text = encodeBase64("xs3cr3tsuffix");
  CHECK(redactorOf("s3cr3t").redact(text));
  CHECK(text == encodeBase64("xs3cr3tsuffix").substr(0, 1) + stars(9) + encodeBase64("xs3cr3tsuffix").substr(10));
  // The same whole characters with other bits beside them are of another value.
  expectUntouched(redactorOf("s3cr3t"), encodeBase64("xs3cr3u"));
  expectUntouched(redactorOf("s3cr3t"), encodeBase64("xxs3cr3v"));
  expectUntouched(redactorOf("s3cr3tt"), encodeBase64("s3cr3tu"));
  // Padding that follows is part of it, no other.
  text = "czNjcjN0czNjcjN0cw== =";
  CHECK(redactorOf("s3cr3ts3cr3ts").redact(text));
  CHECK(text == "******************** =");
}

TEST_CASE("redaction: base64 of very short values", "[redaction]") {
  expectGone(redactorOf("k"), "", "aw==", "");
  expectGone(redactorOf("kq"), "", "a3E=", "");
  expectGone(redactorOf("kqz"), "", "a3F6", "");
  // Four or twelve bits are everywhere.
  expectUntouched(redactorOf("!"), "IQ ordinary text Iabc");
  expectUntouched(redactorOf("k!"), encodeBase64("ordinary text"));
}

TEST_CASE("redaction: base64 inside other escapes", "[redaction]") {
  const std::string secret = "\xFB\xEF\xBE?>?>?>";  // in base64 full of + and /, and padded
  const Redactor redactor = redactorOf(secret + "x");
  const std::string base64 = encodeBase64(secret + "x");
  REQUIRE(base64.find('+') != std::string::npos);
  REQUIRE(base64.find('/') != std::string::npos);
  REQUIRE(base64.back() == '=');
  expectGone(redactor, "?t=", percent(base64, true, isReserved), "&");
  expectGone(redactor, "?t=", percent(base64, false, isAny), "&");
  expectGone(redactor, "\"", replaced(base64, "/", "\\/"), "\"");
  expectGone(redactor, "\"", jsonUnicode(base64), "\"");
  expectGone(redactor, "\"", wrapped(base64, 4, "\\n"), "\"");
  expectGone(redactor, "\"", wrapped(base64, 1, "\\r\\n"), "\"");
  expectGone(redactor, "\"", replaced(percent(base64, true, isReserved), "%", "\\u0025"), "\"" + std::string("%"));
}

TEST_CASE("redaction: escapes of JSON", "[redaction]") {
  const Redactor redactor = redactorOf(kSecret);
  const std::string escaped = replaced(replaced(kSecret, "\\", "\\\\"), "\"", "\\\"");
  expectGone(redactor, "{\"k\":\"", escaped, "\"}");
  expectGone(redactor, "{\"k\":\"", replaced(escaped, "/", "\\/"), "\"}");
  expectGone(redactor, "{\"k\":\"\\n\\\\", jsonUnicode(kSecret), "\\\\\"}");
  expectGone(redactor, "\"", replaced(jsonUnicode(kSecret), "\\u002f", "\\u002F"), "\"");
  expectGone(redactor, "\"", replaced(escaped, "s", "\\u0073"), "\"");
  expectGone(redactorOf("a\tb"), "\"", "a\\tb", "\"");
  // JSON in JSON, a URL in JSON, JSON in a URL.
  expectGone(redactor, "\"{\\\"k\\\":\\\"", replaced(replaced(escaped, "\\", "\\\\"), "\"", "\\\""), "\\\"}\"");
  expectGone(redactor, "\"http:\\/\\/a\\/?k=", replaced(percent(kSecret, true, isReserved), "e", "\\u0065"), "\"");
  expectGone(redactor, "?j=%7B%22k%22%3A%22", percent(escaped, true, isReserved), "%22%7D");
  expectGone(redactorOf("a /b"), "\"q=", "a+\\/b", "\"");
  expectGone(redactorOf("a /b"), "q=", "a+%5C%2Fb", "&c");
  // A backslash that escapes nothing is no part of it.
  expectGone(redactorOf("secret"), "C:\\", "secret", "\\x");
  expectGone(redactorOf("u0041"), "\\", "u0041", "");
  expectUntouched(redactorOf("A!"), "\\u004 \\u 0041! \\u00410! \\");
}

TEST_CASE("redaction: values beyond ASCII", "[redaction]") {
  const Redactor redactor = redactorOf("cl\xE9-\xFC\xFF");
  expectGone(redactor, "", "cl\xE9-\xFC\xFF", "");
  expectGone(redactor, "", "cl\xC3\xA9-\xC3\xBC\xC3\xBF", "");
  expectGone(redactor, "", "cl\\u00e9-\\u00FC\\u00ff", "");
  expectGone(redactor, "", "cl%E9-%FC%FF", "");
  expectGone(redactor, "", "cl%C3%A9-%c3%bc\xC3\xBF", "");
  expectGone(redactor, "", encodeBase64("cl\xE9-\xFC\xFF"), "");
  expectGone(redactor, "", encodeBase64("cl\xC3\xA9-\xC3\xBC\xC3\xBF"), "");
  // Bytes of UTF-8 that were given one by one.
  const Redactor raw = redactorOf("\xE2\x82\xAC\xF0\x9F\x94\x91");
  expectGone(raw, "x", "\xE2\x82\xAC\xF0\x9F\x94\x91", "x");
  expectGone(raw, "\"", "\\u20ac\\ud83d\\udd11", "\"");
  expectUntouched(raw, "\\u20ac\\ud83d \\udd11\\ud83d\\ud83d");
}

TEST_CASE("redaction: a token without its scheme", "[redaction]") {
  const Redactor redactor = redactorOfAuthorization("Bearer abcd1234");
  expectGone(redactor, "", "Bearer abcd1234", "");
  expectGone(redactor, "bearer ", "abcd1234", "");
  expectGone(redactor, "", encodeBase64("abcd1234"), "");
  expectGone(redactor, "", percent("abcd1234", true, isAny), "");
  expectGone(redactorOfAuthorization("Token \t abcd1234"), "x", "abcd1234", "x");
  expectGone(redactorOfAuthorization("AWS4 Credential=a, Signature=b"), "", "Credential=a, Signature=b", "");
  // Under eight characters only the whole value.
  expectUntouched(redactorOfAuthorization("Bearer k"), "k Bearer abcd");
  expectGone(redactorOfAuthorization("Bearer k"), "k ", "Bearer k", " k");
  expectUntouched(redactorOfAuthorization("Bearer abc1234"), "abc1234");
  // Only of this header.
  expectUntouched(redactorOf("Bearer abcd1234"), "abcd1234");
}

TEST_CASE("redaction: what Basic stands for", "[redaction]") {
  const auto basic = [](const std::string& pair) { return redactorOfAuthorization("Basic " + encodeBase64(pair)); };
  const Redactor redactor = basic("user:pass/word");
  expectGone(redactor, "", "Basic " + encodeBase64("user:pass/word"), "");
  expectGone(redactor, "x ", encodeBase64("user:pass/word"), "");
  expectGone(redactor, "", "user:pass/word", "");
  expectGone(redactor, "user: ", "pass/word", "");
  expectGone(redactor, "", "pass%2Fword", "");
  expectGone(redactor, "", "pass\\/word", "");
  expectGone(redactor, "", encodeBase64("pass/word"), "");
  expectUntouched(redactor, "user: pass word");
  expectGone(basic("u:p:w:d"), "", "p:w:d", "");
  expectGone(redactorOfAuthorization("bASIC " + unpadded(encodeBase64("user:secret"))), "", "secret", "");
  // A key in the user's place.
  expectGone(basic("sk_live_123:"), "", "sk_live_123", " x");
  expectUntouched(basic("user:"), "user name");
  // Too short to be anything but everywhere.
  expectUntouched(basic("u:p"), "u p up pu");
  expectUntouched(basic(":"), "a:b");
  expectUntouched(redactorOfAuthorization("Basic"), "anything: else");
  expectUntouched(redactorOfAuthorization("Basic "), "anything: else");
  expectUntouched(redactorOfAuthorization("Basic ?"), "anything: else");
  expectGone(basic("u\xE9:p\xE9ss"), "", "p\xC3\xA9ss", "");
}

TEST_CASE("redaction: several headers at once", "[redaction]") {
  const Redactor redactor({{"authorization", "Bearer abcd1234"}, {"x-a", "first"}, {"x-b", "second"}, {"x-c", ""}});
  std::string text = "first abcd1234 second c2Vjb25k third f%69rst";
  CHECK(redactor.redact(text));
  CHECK(text == "***** ******** ****** ******** third *******");
  const Redactor copy = redactor;
  CHECK(copy.finds("first"));
}

TEST_CASE("redaction: a value longer than the text", "[redaction]") {
  const std::string value(100000, 'v');
  const Redactor redactor = redactorOf(value);
  expectUntouched(redactor, value.substr(1));
  expectGone(redactor, "w", value, "w");
}

TEST_CASE("redaction: a text made to be slow is not", "[redaction][time]") {
  // Ten times the text takes about ten times as long; were it quadratic, a hundred times. What is asked is far from
  // either, so that a busy machine does not fail it.
  const std::string value = std::string(4000, 'a') + "b";
  const Redactor redactor({{"x-a", value},
                           {"x-b", "aaaaaaaab"},
                           {"x-c", std::string(2000, 'Q') + "x"},
                           {"authorization", "Bearer " + std::string(3000, '%') + "25"}});
  const auto timed = [&](const std::string& unit, std::size_t size) {
    std::string text;
    while (text.size() < size) {
      text += unit;
    }
    const std::clock_t start = std::clock();  // the processor's time: others do not count
    redactor.redact(text);
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  for (const char* unit : {"a",   "%61", "\\u0061", "%",         "%2",    "\\",       "\\u", "\\ud800", "Q", "YWFh",
                           "Y\n", "%25", "%5C",     "\\\\u0061", "%2561", "%5Cu0061", "+",   "%5",      "=", "\r\n"}) {
    INFO(unit);
    const double small = timed(unit, 100000);
    CHECK(timed(unit, 1000000) < 0.05 + 40 * small);
  }
}

TEST_CASE("redaction: random secrets in random encodings at random places", "[redaction][property]") {
  std::mt19937 random(20240607);  // NOLINT(cert-msc51-cpp): the same texts every time
  const auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  const std::string secretBytes =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/=%\\\"& :;,?#<>{}\xE9\xFC\xFF";
  const std::string fillers = "xyz XYZ 09.,;:<>()[]{}!?&=%\\+/-_\r\n\"\xC3\xA4\x80";
  for (int round = 0; round < 3000; ++round) {
    std::string secret;
    for (std::size_t size = 6 + below(40); secret.size() < size;) {
      secret += secretBytes[below(secretBytes.size())];
    }
    if (secret.front() == ' ' || secret.back() == ' ') {
      continue;
    }
    const std::string json = replaced(replaced(secret, "\\", "\\\\"), "\"", "\\\"");
    const std::string around = std::string("ab").substr(below(3)) + secret + std::string("cd").substr(below(3));
    std::string mixed;
    for (const char c : secret) {
      // A percent sign is always encoded where others are; elsewhere the encoder tosses a coin.
      mixed += c == '%' || below(2) == 0 ? percent(std::string(1, c), below(2) == 0, isAny) : std::string(1, c);
    }
    const Strings forms = {secret,
                           utf8OfLatin1(secret),
                           mixed,
                           percent(secret, false, isReserved),
                           replaced(percent(secret, true, isReserved), "%20", "+"),
                           utf8OfLatin1(json),
                           replaced(utf8OfLatin1(json), "/", "\\/"),
                           jsonUnicode(secret),
                           percent(json, true, isReserved),
                           encodeBase64(around),
                           unpadded(urlSafe(encodeBase64(around))),
                           wrapped(encodeBase64(around), 1 + below(20), "\r\n"),
                           percent(encodeBase64(around), true, isReserved),
                           replaced(encodeBase64(around), "/", "\\/")};
    const std::string& form = forms[below(forms.size())];
    const auto filler = [&] {
      std::string text;
      for (std::size_t size = below(200); text.size() < size;) {
        text += fillers[below(fillers.size())];
      }
      return text + " ";  // no half of an escape before the form
    };
    const std::string before = filler();
    const std::string after = " " + filler();
    std::string text = before + form + after;
    const Redactor redactor = redactorOf(secret);
    INFO(round << " secret " << secret << " in " << text);
    REQUIRE(redactor.finds(text));
    REQUIRE(redactor.redact(text));
    REQUIRE(text.size() == before.size() + form.size() + after.size());
    REQUIRE(text.substr(0, before.size()) == before);
    REQUIRE(text.substr(before.size() + form.size()) == after);
    // Of a form in base64 up to two characters of the bytes before may stay, three of those behind, and the padding.
    std::string left = text.substr(before.size(), form.size());
    for (const auto& [from, to] : {std::pair{"*", ""}, {"\r\n", ""}, {"%3D", "="}, {"\\/", "/"}}) {
      left = replaced(left, from, to);
    }
    REQUIRE(left.size() <= 7);
    REQUIRE_FALSE(redactor.finds(text));
    std::string none = before + after;
    REQUIRE_FALSE(redactor.redact(none));
    REQUIRE(none == before + after);
  }
}

}  // namespace stitchkit
