#include "codingtools/file_glob.h"

#include "tests/codingtools/test_files.h"

#include <string>
#include <vector>

using namespace stitchkit;
using namespace stitchkit::test;

namespace {

using Paths = std::vector<std::string>;

Result<GlobResult> tryGlob(const Workspace& workspace, const std::string& pattern, const std::string& base = ".",
                           const SearchScope& scope = {}) {
  const ContainedDirectory directory = workspace.open();
  return globFiles(directory, at(base), pattern, scope, {});
}

GlobResult glob(const Workspace& workspace, const std::string& pattern, const std::string& base = ".",
                const SearchScope& scope = {}) {
  Result<GlobResult> result = tryGlob(workspace, pattern, base, scope);
  requireOk(result);
  return std::move(*result);
}

}  // namespace

TEST_CASE("globbing sorts by UTF-16 code unit") {
  const Workspace workspace;
  for (const char* name : {"\xEF\xBD\x9E", "\xF0\x9F\x98\x80", "z", "zz", "Z", "_", "-"}) {
    put(workspace, name);
  }
  const GlobResult result = glob(workspace, "*");
  CHECK(result.paths == Paths{"-", "Z", "_", "z", "zz", "\xF0\x9F\x98\x80", "\xEF\xBD\x9E"});
  CHECK(result.scannedFiles == 7);
}

TEST_CASE("globbing is anchored at its base and counts what is below") {
  const Workspace workspace;
  for (const char* path : {"a.ts", "src/c.ts", "src/d/e.ts", "node_modules/x/a.ts"}) {
    put(workspace, path);
  }
  GlobResult result = glob(workspace, "*.ts", "src");
  CHECK(result.paths == Paths{"src/c.ts"});
  CHECK(result.scannedFiles == 2);
  CHECK(result.skippedDirectories == 0);
  result = glob(workspace, "**/*.ts");
  CHECK(result.paths == Paths{"a.ts", "src/c.ts", "src/d/e.ts"});
  CHECK(result.skippedDirectories == 1);
  result = glob(workspace, "**", "node_modules/x");
  CHECK(result.paths.empty());
  CHECK(result.skippedDirectories == 1);
  CHECK(result.scannedFiles == 0);
}

TEST_CASE("globbing says what it left out") {
  const Workspace workspace;
  for (const char* path : {"d", "b", "a", "c"}) {
    put(workspace, path);
  }
  SearchScope scope;
  scope.maxResults = 2;
  GlobResult result = glob(workspace, "*", ".", scope);
  CHECK(result.paths == Paths{"a", "b"});
  CHECK(result.resultTruncated);
  CHECK_FALSE(result.truncated);
  CHECK(result.scannedFiles == 4);
  scope.maxResults = 4;
  CHECK_FALSE(glob(workspace, "*", ".", scope).resultTruncated);
  scope.maxFiles = 2;
  result = glob(workspace, "*", ".", scope);
  CHECK(result.paths == Paths{"a", "b"});
  CHECK(result.truncated);
  CHECK(result.scannedFiles == 2);
}

TEST_CASE("globbing many files keeps the first") {
  const Workspace workspace;
  for (int i = 0; i < 1000; ++i) {
    put(workspace, std::to_string(i));
  }
  SearchScope scope;
  scope.maxResults = 3;
  const GlobResult result = glob(workspace, "*", ".", scope);
  CHECK(result.paths == Paths{"0", "1", "10"});
  CHECK(result.resultTruncated);
}

TEST_CASE("globbing refuses what it cannot do") {
  const Workspace workspace;
  put(workspace, "a");
  REQUIRE(::symlink(workspace.outside.c_str(), (workspace / "l").c_str()) == 0);
  requirePathError(tryGlob(workspace, "**", "nope"), "ENOENT");
  requirePathError(tryGlob(workspace, "**", "dist"), "ENOENT");
  requirePathError(tryGlob(workspace, "**", "a"), "ENOTDIR");
  requirePathError(tryGlob(workspace, "**", "l"), "ELOOP");
  CHECK(tryGlob(workspace, "\xFF").error().kind == ErrorKind::kBadRequest);
}
