// The paths of sessions and of tools: whatever is taken names something inside by its text, and says so again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "codingtools/tool_path.h"
#include "codingtools/workspace_path.h"
#include "tests/fuzz/require.h"

namespace stitchkit {
namespace {

constexpr std::size_t kMostBytes = 300;

void checkInside(const WorkspacePath& path) {
  const std::string canonical = path.canonical();
  FUZZ_REQUIRE(canonical.starts_with("/workspace"));
  FUZZ_REQUIRE(canonical.find_first_of(std::string_view("\0\\", 2)) == std::string::npos);
  const std::string fenced = canonical + "/";
  FUZZ_REQUIRE(fenced.find("//") == std::string::npos);
  FUZZ_REQUIRE(fenced.find("/./") == std::string::npos && fenced.find("/../") == std::string::npos);
  FUZZ_REQUIRE(path.isRoot() ? canonical == "/workspace" : canonical == "/workspace/" + path.relative());
  const Result<WorkspacePath> again = WorkspacePath::parse(canonical);
  FUZZ_REQUIRE(again && *again == path);
  if (!path.isRoot()) {
    const WorkspacePath parent = path.parent();
    FUZZ_REQUIRE(canonical == parent.canonical() + "/" + std::string(path.name()));
    checkInside(parent);
  }
}

void checkToolPath(std::string_view text, RootPath root) {
  const Result<WorkspacePath> path = parseToolPath(text, root, kMostBytes);
  if (path) {
    checkInside(*path);
    FUZZ_REQUIRE(toolPathText(*path) == text && text.size() <= kMostBytes);
    FUZZ_REQUIRE(!path->isRoot() || root == RootPath::kAllowed);
    FUZZ_REQUIRE(!path->tooLong());
    return;
  }
  const Error& error = path.error();
  FUZZ_REQUIRE(error.kind == ErrorKind::kBadRequest || error.kind == ErrorKind::kForbidden);
  FUZZ_REQUIRE(!error.hint.empty());
  for (const auto& [name, value] : error.details) {
    if (name == "recoveryPath") {
      const auto again = parseToolPath(std::get<std::string>(value), RootPath::kAllowed, kMostBytes);
      FUZZ_REQUIRE(again || again.error().kind == ErrorKind::kBadRequest);  // a name may be too long
    }
  }
}

}  // namespace
}  // namespace stitchkit

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stitchkit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<WorkspacePath> path = WorkspacePath::parse(text);
  if (path) {
    checkInside(*path);
    FUZZ_REQUIRE(path->isRoot() || text.ends_with(path->relative()));
  } else {
    FUZZ_REQUIRE(path.error().kind == ErrorKind::kPath && !path.error().hint.empty());
  }
  checkToolPath(text, RootPath::kRefused);
  checkToolPath(text, RootPath::kAllowed);
  return 0;
}
