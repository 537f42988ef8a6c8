#include "codingtools/tool_path.h"

#include <catch2/catch.hpp>

#include <string>

using namespace stitchkit;

namespace {

constexpr std::size_t kMaxBytes = 4096;

Error refusal(const std::string& text, RootPath root = RootPath::kRefused) {
  const Result<WorkspacePath> parsed = parseToolPath(text, root, kMaxBytes);
  REQUIRE_FALSE(parsed.has_value());
  CHECK_FALSE(parsed.error().hint.empty());
  return parsed.error();
}

std::string detail(const Error& error, const std::string& name) {
  for (const auto& [key, value] : error.details) {
    if (key == name) {
      return std::get<std::string>(value);
    }
  }
  return "";
}

}  // namespace

TEST_CASE("ordinary names are paths, whatever they hold") {
  for (const char* text : {"a.txt", "a/b/c", "...", "..a", "~", "a\nb", "*", "\xC3\xA9", " a ", "-e"}) {
    CAPTURE(text);
    CHECK(parseToolPath(text, RootPath::kRefused, kMaxBytes).value().relative() == text);
  }
  CHECK(parseToolPath(".", RootPath::kAllowed, kMaxBytes).value().isRoot());
  CHECK(parseToolPath(std::string(255, 'a'), RootPath::kRefused, kMaxBytes).has_value());
  CHECK(parseToolPath("\xC3\xA9\xC3\xA9\xC3\xA9", RootPath::kRefused, 6).has_value());
}

TEST_CASE("paths that try to go elsewhere are forbidden") {
  for (const char* text : {"..", "../a", "d/../a", "./a", "a/.", "a//b", "a/", "a\\b", ""}) {
    CAPTURE(text);
    CHECK(refusal(text).kind == ErrorKind::kForbidden);
    CHECK(refusal(text, RootPath::kAllowed).kind == ErrorKind::kForbidden);
    CHECK(detail(refusal(text), "path") == text);
  }
  CHECK(refusal(".").kind == ErrorKind::kForbidden);
}

TEST_CASE("an absolute path is a mistake that is easily mended") {
  CHECK(refusal("/workspace/a/b.txt").kind == ErrorKind::kBadRequest);
  CHECK(detail(refusal("/workspace/a/b.txt"), "recoveryPath") == "a/b.txt");
  CHECK(detail(refusal("/workspace"), "recoveryPath") == ".");
  CHECK(detail(refusal("/workspace/"), "recoveryPath") == ".");
  CHECK(detail(refusal("/workspace/d/"), "recoveryPath") == "d");
  for (const char* text : {"/", "/etc/passwd", "/workspacex", "/workspace/../etc"}) {
    CAPTURE(text);
    CHECK(refusal(text).kind == ErrorKind::kBadRequest);
    CHECK(detail(refusal(text), "recoveryPath").empty());
  }
}

TEST_CASE("paths that no file can have are refused") {
  CHECK(refusal(std::string("a\0b", 3)).kind == ErrorKind::kBadRequest);
  CHECK(refusal(std::string(256, 'a')).kind == ErrorKind::kBadRequest);
  CHECK(refusal("d/" + std::string(256, 'a') + "/b").kind == ErrorKind::kBadRequest);
  const Error tooLong = refusal(std::string(kMaxBytes + 1, 'a'));
  CHECK(tooLong.kind == ErrorKind::kBadRequest);
  CHECK(std::get<std::int64_t>(tooLong.details.front().second) == 4096);
}
