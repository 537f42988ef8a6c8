// Targets in the one form that is checked and sent.
#include "gateway/request_target.h"

#include <catch2/catch.hpp>

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace stitchkit {
namespace {

std::string targetText(std::string_view target) {
  const auto parsed = parseRequestTarget(target);
  if (parsed) {
    return parsed->text();
  }
  switch (parsed.error()) {
    case TargetFault::kMalformed:
      return "malformed";
    case TargetFault::kNotOriginForm:
      return "not origin form";
    case TargetFault::kBackslash:
      return "backslash";
  }
  return "?";
}

TEST_CASE("targets that are what they are stay so") {
  for (const char* target :
       {"/",       "/a",           "/a/",      "/a/b?c=d",       "/a//b",  "/?",       "/?a?b",
        "/a?../b", "/a?%",         "/a?x=%zz", "/a?/../..",      "/a;b",   "/...",     "/....",
        "/.a",     "/a.",          "/..a",     "/%41",           "/a%2Fb", "/a%2fb",   "/%2e%2e%2f",
        "/..%2f",  "/%252e%252e/", "/a:b@c",   "/~a!$&'()*+,;=", "/^|[]",  "/a/.../b", "/%2e%2e%2e",
        "/a?\\"}) {
    CHECK(targetText(target) == target);
  }
  const auto parsed = parseRequestTarget("/a/b?c?d");
  CHECK(parsed->path == "/a/b");
  CHECK(parsed->query == "?c?d");
}

TEST_CASE("dot segments go, in every spelling") {
  const std::vector<std::pair<std::string, std::string>> cases{{"/.", "/"},
                                                               {"/..", "/"},
                                                               {"/./", "/"},
                                                               {"/../", "/"},
                                                               {"/a/.", "/a/"},
                                                               {"/a/..", "/"},
                                                               {"/a/../", "/"},
                                                               {"/a/./b", "/a/b"},
                                                               {"/a/../b", "/b"},
                                                               {"/../../a", "/a"},
                                                               {"/a/b/../..", "/"},
                                                               {"/a/b/../../..", "/"},
                                                               {"/a/b/..", "/a/"},
                                                               {"/a/../../b", "/b"},
                                                               {"/a/..?x", "/?x"},
                                                               {"/a//../b", "/a/b"},
                                                               {"/a/b/../c/./d", "/a/c/d"}};
  const std::vector<std::string> dots{".", "%2e", "%2E"};
  for (const auto& [from, to] : cases) {
    CHECK(targetText(from) == to);
    for (const std::string& first : dots) {
      for (const std::string& second : dots) {
        std::string spelled;
        bool odd = false;
        for (const char c : from) {
          spelled += c == '.' ? (odd ? second : first) : std::string(1, c);
          odd = c == '.' && !odd;
        }
        INFO(spelled);
        CHECK(targetText(spelled) == to);
      }
    }
  }
}

TEST_CASE("targets of another form are told apart") {
  for (const char* target :
       {"*", "http://a/", "a:80", "a", "//", "//a/b", "?x", "/..//a", "/.//a", "/a/..//b", "/%2e//a", "%2fa"}) {
    CHECK(targetText(target) == "not origin form");
  }
  for (const char* target : {"/\\", "/a\\b", "/a\\..\\b", "/\\\\a"}) {
    CHECK(targetText(target) == "backslash");
  }
  for (const char* target : {"", "/a b", "/a\tb", "/a\x7f", "/a\r\nb", "/\xC3\xA4", "/a#b", "/a?b#c", "/a?\xFF", "/%",
                             "/%4", "/%zz", "/a%2", "/%%41", "/a%g1", "/\x01"}) {
    CHECK(targetText(target) == "malformed");
  }
  CHECK(targetText(std::string_view("/a\0b", 4)) == "malformed");
}

TEST_CASE("what a URL does not hold is encoded") {
  CHECK(targetText("/a\"b<c>d`e{f}") == "/a%22b%3Cc%3Ed%60e%7Bf%7D");
  CHECK(targetText("/a?b\"c<d>e`{}") == "/a?b%22c%3Cd%3Ee`{}");
}

TEST_CASE("paths that hide a separator, an end or dots are ambiguous") {
  for (const char* path : {"/a%2fb", "/a%2F", "/%5c", "/a%5Cb", "/%00", "/..;/a", "/a/..;x", "/.;/", "/%2e%2e;x",
                           "/.%2E%3bx/", "/..%3B"}) {
    INFO(path);
    CHECK(pathIsAmbiguous(path));
  }
  for (const char* path : {"/", "/a", "/a;b", "/a/...x", "/...", "/a..;", "/a.b;c", "/%41", "/;", "/a/;x"}) {
    INFO(path);
    CHECK_FALSE(pathIsAmbiguous(path));
  }
}

TEST_CASE("what a target has become is a target, and the same") {
  const std::vector<std::string> parts{"/", "/", ".",  "..", "%2e", "%2E", "a",   "%2f", "%5C", "?",
                                       ";", "%", "\"", "{",  "//",  "\\",  "%25", "#",   "*"};
  std::mt19937 random(3);
  std::size_t good = 0;
  for (int i = 0; i < 50000; ++i) {
    std::string target = "/";
    for (std::size_t left = random() % 12; left > 0; --left) {
      target += parts[random() % parts.size()];
    }
    const auto parsed = parseRequestTarget(target);
    if (!parsed) {
      continue;
    }
    ++good;
    const auto again = parseRequestTarget(parsed->text());
    INFO(target);
    REQUIRE(again.has_value());
    REQUIRE(again->path == parsed->path);
    REQUIRE(again->query == parsed->query);
    REQUIRE(parsed->path.find('?') == std::string::npos);
    REQUIRE_FALSE(parsed->path.starts_with("//"));
    REQUIRE((parsed->path + "/").find("/../") == std::string::npos);
    REQUIRE((parsed->path + "/").find("/./") == std::string::npos);
  }
  CHECK(good > 5000);
}

}  // namespace
}  // namespace stitchkit
