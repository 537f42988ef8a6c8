#include "backend/privilege/tree_walk.h"

#include "rpc/base/unique_fd.h"
#include "tests/support/processes.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

namespace stitchkit {
namespace {

using testing::ScratchFolder;
using testing::writeFile;

UniqueFd openFolder(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

std::vector<std::string> visited(const std::string& path) {
  std::vector<std::string> paths;
  const auto top = openFolder(path);
  const auto walked = walkTree(top.get(), [&](const TreeEntry& entry) -> Result<void> {
    paths.push_back(entry.path);
    return {};
  });
  REQUIRE(walked.has_value());
  return paths;
}

TEST_CASE("children come before their directory, each entry once, links are not followed") {
  const ScratchFolder folder;
  const ScratchFolder outside;
  writeFile(outside / "secret", "s");
  ::mkdir((folder / "a").c_str(), 0755);
  ::mkdir((folder / "a/b").c_str(), 0755);
  writeFile(folder / "a/b/c", "");
  REQUIRE(::symlink(outside.path().c_str(), (folder / "a/link").c_str()) == 0);
  const auto paths = visited(folder.path());
  REQUIRE(paths.size() == 4);
  const auto at = [&](const char* path) { return std::find(paths.begin(), paths.end(), path) - paths.begin(); };
  REQUIRE(at("a/b/c") < at("a/b"));
  REQUIRE(at("a/b") < at("a"));
  REQUIRE(at("a/link") < at("a"));
}

TEST_CASE("ten thousand levels cost neither stack nor descriptors") {
  const ScratchFolder folder;
  const int levels = 10000;
  auto here = openFolder(folder.path());
  for (int level = 0; level < levels; ++level) {
    REQUIRE(::mkdirat(here.get(), "d", 0755) == 0);
    here.reset(::openat(here.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  here.reset();
  long descriptors = 0;
  int count = 0;
  const auto top = openFolder(folder.path());
  const auto walked = walkTree(top.get(), [&](const TreeEntry&) -> Result<void> {
    if (++count == 1) {
      descriptors = testing::countersOf(::getpid()).descriptors;
    }
    return {};
  });
  REQUIRE(walked.has_value());
  REQUIRE(count == levels);
  REQUIRE(descriptors < 20);
}

TEST_CASE("a refusal of the visitor ends the walk") {
  const ScratchFolder folder;
  writeFile(folder / "one", "");
  writeFile(folder / "two", "");
  int count = 0;
  const auto top = openFolder(folder.path());
  const auto walked = walkTree(top.get(), [&](const TreeEntry&) -> Result<void> {
    ++count;
    return Error(ErrorKind::kUnavailable, "no");
  });
  REQUIRE_FALSE(walked.has_value());
  REQUIRE(count == 1);
}

}  // namespace
}  // namespace stitchkit
