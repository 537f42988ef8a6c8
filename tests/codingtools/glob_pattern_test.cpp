#include "codingtools/glob_pattern.h"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace stitchkit;

namespace {

bool matches(const std::string& pattern, const std::string& path) {
  return GlobPattern::compile(pattern).value().matches(path);
}

}  // namespace

TEST_CASE("globs match as documented") {
  const std::vector<std::pair<const char*, std::vector<const char*>>> matching{
      {"*.ts", {"a.ts", ".ts", ".hidden.ts", "\xC3\xA9.ts", "a\nb.ts"}},
      {"**/*.ts", {"a.ts", "src/c.ts", "src/d/e.ts", ".cfg/y.ts"}},
      {"src/**", {"src/a", "src/a/b", "src/"}},
      {"**", {"a", "a/b", ""}},
      {"***/*.ts", {"src/c.ts", "src/d/e.ts"}},
      {"s**/c.ts", {"src/c.ts", "sc.ts"}},
      {"?.ts", {"a.ts", "\xC3\xA9.ts", "\xF0\x9F\x98\x80.ts"}},
      {"a(1)+b|c.[x]{2}^$", {"a(1)+b|c.[x]{2}^$"}},
      {"\\*.ts", {"\\a.ts"}},
  };
  for (const auto& [pattern, paths] : matching) {
    for (const char* path : paths) {
      CAPTURE(pattern, path);
      CHECK(matches(pattern, path));
    }
  }
}

TEST_CASE("globs match nothing else") {
  const std::vector<std::pair<const char*, std::vector<const char*>>> failing{
      {"*.ts", {"src/c.ts", "a.tsx", "a.TS", "ats"}},
      {"**/*.ts", {"a.js", "src/d.ts/e"}},
      {"src/", {"src/a", "src"}},
      {"**/", {"a", "a/b"}},
      {"***/*.ts", {"a.ts"}},
      {"?.ts", {".ts", "ab.ts", "/.ts"}},
      {"a.ts", {"axts"}},
      {"", {"a"}},
  };
  for (const auto& [pattern, paths] : failing) {
    for (const char* path : paths) {
      CAPTURE(pattern, path);
      CHECK_FALSE(matches(pattern, path));
    }
  }
}

TEST_CASE("no glob takes long") {
  CHECK_FALSE(matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", std::string(4000, 'a') + 'c'));
  std::string pattern;
  std::string path;
  for (int i = 0; i < 60; ++i) {
    pattern += "**/";
    path += "d/";
  }
  CHECK_FALSE(matches(pattern + "*.ts", path + "x.js"));
  CHECK_FALSE(matches(std::string(5000, 'a'), "a"));
  CHECK(matches(std::string(16384, '*'), "a"));
}

TEST_CASE("a glob that cannot be used is refused in words") {
  for (const std::string& pattern : {std::string(16385, 'a'), std::string("a\xFFz")}) {
    const Result<GlobPattern> refused = GlobPattern::compile(pattern);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().kind == ErrorKind::kBadRequest);
    CHECK_FALSE(refused.error().hint.empty());
  }
}
