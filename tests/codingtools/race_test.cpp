// Somebody exchanges a directory and a link to the outside as fast as possible, while the engine works on paths
// through it. Not a byte may come from outside, nor go there.
#include "tests/codingtools/test_files.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <cstdio>
#include <thread>

using namespace stitchkit;
using namespace stitchkit::test;

namespace {

constexpr int kRounds = 20000;

/// Swaps `dir` and `link` until it goes out of scope.
class Swapper {
 public:
  explicit Swapper(const Workspace& workspace)
      : thread_([&workspace](const std::stop_token& stop) {
          const std::string dir = workspace / "dir";
          const std::string link = workspace / "link";
          while (!stop.stop_requested()) {
            ::renameat2(AT_FDCWD, dir.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE);
          }
        }) {}

 private:
  std::jthread thread_;
};

void setUp(const Workspace& workspace) {
  std::filesystem::create_directories(workspace / "dir/sub");
  std::filesystem::create_directories(workspace.outside + "/sub");
  writeText(workspace / "dir/file", "inside");
  writeText(workspace.outside + "/file", "CANARY");
  writeText(workspace.outside + "/sub/canary", "CANARY");
  std::filesystem::create_symlink(workspace.outside, workspace / "link");
}

bool isInMemory(const std::string& path) {
  struct statfs status {};
  return ::statfs(path.c_str(), &status) == 0 && status.f_type == TMPFS_MAGIC;
}

void requireOutsideUntouched(const Workspace& workspace) {
  CHECK(readText(workspace.outside + "/file") == "CANARY");
  CHECK(readText(workspace.outside + "/sub/canary") == "CANARY");
  CHECK(std::distance(std::filesystem::recursive_directory_iterator(workspace.outside), {}) == 3);
}

}  // namespace

TEST_CASE("a plain open is fooled by the exchange") {
  const Workspace workspace;
  setUp(workspace);
  const Swapper swapper(workspace);
  int fooled = 0;
  for (int round = 0; round < kRounds; ++round) {
    fooled += readText(workspace / "dir/file") == "CANARY" ? 1 : 0;
  }
  CHECK(fooled > 0);
}

TEST_CASE("reads never leave the workspace") {
  const Workspace workspace;
  setUp(workspace);
  const Swapper swapper(workspace);
  const ContainedDirectory directory = workspace.open();
  int inside = 0;
  int links = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Result<std::string> content = directory.readFile(at("dir/file"), 100);
    REQUIRE((!content || *content == "inside"));
    const std::optional<std::string> cached = directory.readCachedFile(at("dir/file"), 100);
    REQUIRE((!cached || *cached == "inside"));
    inside += content ? 1 : 0;
    links += content ? 0 : 1;
  }
  CHECK(inside > 0);
  CHECK(links > 0);
}

TEST_CASE("writes never leave the workspace") {
  const Workspace workspace;
  setUp(workspace);
  {
    const Swapper swapper(workspace);
    const ContainedDirectory directory = workspace.open();
    StagingDirectory staging = workspace.staging();
    for (int round = 0; round < kRounds; ++round) {
      const std::string path = round % 2 == 0 ? "dir/file" : "dir/new" + std::to_string(round % 10) + "/deep/file";
      static_cast<void>(directory.replaceFile(at(path), "inside", ContainedDirectory::Parents::kCreate, staging));
    }
  }
  requireOutsideUntouched(workspace);
  CHECK(std::filesystem::is_empty(workspace.stagingPath));
}

TEST_CASE("removals never leave the workspace") {
  const Workspace workspace;
  setUp(workspace);
  // Making and removing is slow on a disk; the runs in memory do it in full.
  const int rounds = isInMemory(workspace.path) ? kRounds : kRounds / 10;
  {
    const Swapper swapper(workspace);
    const ContainedDirectory directory = workspace.open();
    StagingDirectory staging = workspace.staging();
    for (int round = 0; round < rounds; ++round) {
      static_cast<void>(directory.removeTree(at(round % 2 == 0 ? "dir/sub" : "dir/file")));
      static_cast<void>(directory.replaceFile(at("dir/sub/f"), "x", ContainedDirectory::Parents::kCreate, staging));
      if (round % 100 == 0) {
        static_cast<void>(directory.removeTree(at("dir")));
        static_cast<void>(::mkdir((workspace / "dir").c_str(), 0700));
        static_cast<void>(::symlink(workspace.outside.c_str(), (workspace / "link").c_str()));
      }
    }
  }
  requireOutsideUntouched(workspace);
}
