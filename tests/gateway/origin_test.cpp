// Origins of a policy and the Host headers that mean them: one spelling each, all others refused.
#include <catch2/catch.hpp>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gateway/origin.h"

namespace stitchkit {
namespace {

using Strings = std::vector<std::string>;

/// What is wrong with an origin; "" when nothing is.
std::string faultOf(const std::string& text) {
  const auto origin = parseOrigin(text);
  return origin ? "" : origin.error().message;
}

std::string hintOf(const std::string& text) {
  const auto origin = parseOrigin(text);
  return origin ? "" : origin.error().hint;
}

bool mentions(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("origin: what is accepted, and what it becomes", "[origin]") {
  struct Row {
    std::string text;
    Origin origin;
    std::string authority;
    std::string normalised;
  };
  const std::vector<Row> table = {
      {"http://a.example", {false, "a.example", false, 80}, "a.example", "http://a.example"},
      {"https://a.example", {true, "a.example", false, 443}, "a.example", "https://a.example"},
      {"HTTPS://A.Example:443/", {true, "a.example", false, 443}, "a.example", "https://a.example"},
      {"http://a.example:443", {false, "a.example", false, 443}, "a.example:443", "http://a.example:443"},
      {"https://a.example:80", {true, "a.example", false, 80}, "a.example:80", "https://a.example:80"},
      {"http://a:8080?", {false, "a", false, 8080}, "a:8080", "http://a:8080"},
      {"http://a/?#", {false, "a", false, 80}, "a", "http://a"},
      {"http://a#", {false, "a", false, 80}, "a", "http://a"},
      {"http://a:1", {false, "a", false, 1}, "a:1", "http://a:1"},
      {"http://a:65535", {false, "a", false, 65535}, "a:65535", "http://a:65535"},
      {"http://a_b.c-d.e", {false, "a_b.c-d.e", false, 80}, "a_b.c-d.e", "http://a_b.c-d.e"},
      {"http://localhost:3000", {false, "localhost", false, 3000}, "localhost:3000", "http://localhost:3000"},
      {"http://xn--mnchen-3ya.de",
       {false, "xn--mnchen-3ya.de", false, 80},
       "xn--mnchen-3ya.de",
       "http://xn--mnchen-3ya.de"},
      {"http://1.a", {false, "1.a", false, 80}, "1.a", "http://1.a"},
      {"http://0x7f.a", {false, "0x7f.a", false, 80}, "0x7f.a", "http://0x7f.a"},
      {"http://127.0.0.1", {false, "127.0.0.1", true, 80}, "127.0.0.1", "http://127.0.0.1"},
      {"https://192.168.0.255:8443",
       {true, "192.168.0.255", true, 8443},
       "192.168.0.255:8443",
       "https://192.168.0.255:8443"},
      {"http://[::1]", {false, "::1", true, 80}, "[::1]", "http://[::1]"},
      {"http://[0:0:0:0:0:0:0:1]:8080", {false, "::1", true, 8080}, "[::1]:8080", "http://[::1]:8080"},
      {"https://[2001:DB8::00aB]", {true, "2001:db8::ab", true, 443}, "[2001:db8::ab]", "https://[2001:db8::ab]"},
      {"https://[2001:db8:0:0:1:0:0:1]",
       {true, "2001:db8::1:0:0:1", true, 443},
       "[2001:db8::1:0:0:1]",
       "https://[2001:db8::1:0:0:1]"},
      {"http://" + std::string(300, 'a') + ".example",
       {false, std::string(300, 'a') + ".example", false, 80},
       std::string(300, 'a') + ".example",
       "http://" + std::string(300, 'a') + ".example"},
  };
  for (const Row& row : table) {
    INFO(row.text);
    const auto origin = parseOrigin(row.text);
    REQUIRE(origin.has_value());
    CHECK(*origin == row.origin);
    CHECK(origin->authority() == row.authority);
    CHECK(origin->text() == row.normalised);
    CHECK(parseOrigin(origin->text()).value() == *origin);
    CHECK(canonicalHostHeader(origin->authority()) == origin->authority());
  }
}

TEST_CASE("origin: each fault is named", "[origin]") {
  const std::vector<std::pair<std::string, Strings>> table = {
      {"white space",
       {" http://a", "http://a ", "http://a\n", "http://a\t.com", "http://a.com\r", "ht tp://a",
        std::string("http://a\0b", 10), "http://a\x7f"}},
      {"ASCII",
       {"http://m\xC3\xBCnchen.de",
        "http://a\xE3\x80\x82"
        "b",
        "http://\xD0\xB0.com", "http://a\xFF", "http://a\xC2\xAD.com", "http://u\xC3\xBC:p@a.com"}},
      {"percent-encoded", {"http://a%2ecom", "http://a%", "http://%61", "http://[fe80::1%25eth0]"}},
      {"wildcard", {"*", "http://*", "https://*.a.com", "http://a.*:80"}},
      {"scheme", {"ws://a", "file:///etc", "ftp://a", "a.com:80", "httpss://a", "mailto:a@b"}},
      {"//", {"https:a.com", "https:/a.com", "http:"}},
      {"user information", {"http://u@a", "https://u:p@a.com", "http://@a", "http://:@a"}},
      {"path", {"http://a//", "http://a/x", "http://a/.", "http://a:80/x"}},
      {"query", {"http://a?x", "http://a/?x=1"}},
      {"fragment", {"http://a#x", "http://a/#x"}},
      {"name a host", {"http://", "http:///", "http://:80", "https://?"}},
      {"letters, digits", {"http://a,b", "http://a!", "http://(a)", "http://a~b", "http://a'b", "http://a=b"}},
      {"end its host with a dot", {"http://a.", "http://a.com..", "http://."}},
      {"empty label", {"http://.a", "http://a..b"}},
      {"four decimal",
       {"http://127.1", "http://0x7f000001", "http://2130706433", "http://0x7f.1", "http://0177.0.0.1",
        "http://127.0.0.01", "http://256.1.1.1", "http://1.2.3", "http://a.1", "http://a.0x", "http://0"}},
      {"form of IPv6", {"http://[::ffff:127.0.0.1]", "http://[::FFFF:7f00:1]", "http://[0:0:0:0:0:ffff:1.2.3.4]"}},
      {"port",
       {"http://a:", "http://a:0", "http://a:00", "http://a:080", "http://a:65536", "http://a:99999999999",
        "http://[::1]:", "https://a:/"}},
      {"URL of an HTTP or HTTPS origin",
       {"",
        "nope",
        "http://127.0.0.1.",
        "http://1.2.3.4.5",
        "http://1.2.3.0xF",
        "http://1.2.3.4a",
        "//a.com",
        "a.com",
        "http://a:ab",
        "http://::1",
        "http://a:-1",
        "http://a\\b",
        "http://[::1",
        "http://[]",
        "http://[1::2::3]",
        "http://[::1]a",
        "http://a|b",
        "http://a^b",
        "http://[fe80::1]:8x",
        "://a"}},
  };
  for (const auto& [word, texts] : table) {
    for (const std::string& text : texts) {
      INFO(text);
      CHECK_THAT(faultOf(text), Catch::Contains(word));
    }
  }
  CHECK_FALSE(faultOf("http://[v1.a]").empty());
}

TEST_CASE("origin: a name that is not ASCII is told in punycode, unless it has none", "[origin]") {
  CHECK_THAT(hintOf("https://m\xC3\xBCnchen.de"), Catch::Contains("https://xn--mnchen-3ya.de "));
  CHECK_THAT(hintOf("http://M\xC3\x9CNCHEN.de:8080/"), Catch::Contains("http://xn--mnchen-3ya.de:8080 "));
  CHECK_THAT(hintOf("http://a\xE3\x80\x82"
                    "com"),
             Catch::Contains("http://a.com "));
  CHECK_THAT(hintOf("http://a\xC2\xAD.com"), Catch::Contains("http://a.com "));
  // Cyrillic: the hint shows that it is not the Latin letter.
  CHECK_THAT(hintOf("http://\xD0\xB0pple.com"), Catch::Contains("xn--"));
  for (const char* none : {"http://a\xFF", "http://\xCC\x88.de", "m\xC3\xBCnchen.de", "http://a.com/\xC3\xBC",
                           "http://m\xC3\xBCnchen.de/x", "ws://m\xC3\xBCnchen.de"}) {
    INFO(none);
    CHECK(hintOf(none).empty());
  }
}

TEST_CASE("origin: what may be a password is not repeated", "[origin]") {
  for (const char* text : {"https://user:s3cr3t@a.com", "https://user:s3cr3t\xC3\xBC@a.com", "https://a.com/s3cr3t",
                           "https://s3cr3t@m\xC3\xBCnchen.de", "https://a.com?s3cr3t", "https://m\xC3\xBCn?s3cr3t"}) {
    INFO(text);
    CHECK_FALSE(faultOf(text).empty());
    CHECK_FALSE(mentions(faultOf(text) + hintOf(text), "s3cr3t"));
  }
}

TEST_CASE("origin: an unchecked value is a fault of ours", "[origin]") {
  CHECK_THROWS_AS(parseOrigin("nope").value(), std::logic_error);
}

TEST_CASE("Host: spelled in the one way, in lower case", "[host]") {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"api.example.test:8080", "api.example.test:8080"},
      {"API.EXAMPLE.TEST:8080", "api.example.test:8080"},
      {"api.example.test", "api.example.test"},
      {"a:80", "a:80"},
      {"a_b", "a_b"},
      {"127.0.0.1", "127.0.0.1"},
      {"127.0.0.1:65535", "127.0.0.1:65535"},
      {"[::1]", "[::1]"},
      {"[2001:DB8::1]:443", "[2001:db8::1]:443"},
      {"xapi.example.test", "xapi.example.test"},
      {"api.example.test.evil.test", "api.example.test.evil.test"},
  };
  for (const auto& [value, canonical] : table) {
    INFO(value);
    CHECK(canonicalHostHeader(value) == canonical);
    CHECK(canonicalHostHeader(canonical) == canonical);
  }
}

TEST_CASE("Host: every other spelling means nothing", "[host]") {
  const Strings refused = {
      "",
      " ",
      ":",
      ":80",
      "a:",
      "a:0",
      "a:08080",
      "a:65536",
      "a:8080:8080",
      "a:+80",
      "a:-1",
      "a:8 0",
      "a:0x50",
      "a:http",
      " a",
      "a ",
      "a\t",
      "a\r",
      "a\n",
      "a b",
      std::string("a\0", 2),
      "api.example.test.",
      "a..",
      "..",
      ".",
      ".a",
      "a..b",
      "x@a",
      "a:8080@evil.test",
      "evil.test#.a",
      "evil.test%23.a",
      "a/b",
      "a?b",
      "a\\b",
      "a%2eb",
      "a\xE3\x80\x82"
      "b",
      "\xD0\xB0",
      "a\x80",
      "127.1",
      "0x7f000001",
      "2130706433",
      "0177.0.0.1",
      "127.0.0.01",
      "127.0.0.1.",
      "[::ffff:127.0.0.1]",
      "[::ffff:7f00:1]",
      "[0:0:0:0:0:0:0:1]",
      "[::0001]",
      "[::1",
      "[]",
      "::1",
      "[::1]x",
      "[::1]8080",
      "[::1]:",
      "[::1]:0",
      "[::1%eth0]",
      "[::1%25eth0]",
      "[127.0.0.1]",
      "[a]",
      "[[::1]]",
      "x[::1]",
      "*",
      "*.a",
      "a,b",
      "a;b",
      "http://a",
      "a\"b",
      "(a)",
  };
  for (const std::string& value : refused) {
    INFO(value);
    CHECK(canonicalHostHeader(value).empty());
  }
}

}  // namespace stitchkit
