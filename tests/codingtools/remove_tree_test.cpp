#include "codingtools/remove_tree.h"

#include "tests/codingtools/test_files.h"

#include <sys/resource.h>

#include <atomic>
#include <thread>

using namespace stitchkit;
using namespace stitchkit::test;

namespace {

/// `depth` directories in one another, each with a file.
void makeDeep(const std::string& top, int depth) {
  REQUIRE(::mkdir(top.c_str(), 0700) == 0);
  UniqueFd current(::open(top.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int level = 0; level < depth; ++level) {
    REQUIRE(::mkdirat(current.get(), "deeper", 0700) == 0);
    UniqueFd(::openat(current.get(), "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    current = UniqueFd(::openat(current.get(), "deeper", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    REQUIRE(current);
  }
}

}  // namespace

TEST_CASE("removing takes what is named and nothing that a link names") {
  const Workspace workspace;
  const ContainedDirectory directory = workspace.open();
  std::filesystem::create_directories(workspace / "tree/a/b");
  writeText(workspace / "tree/a/b/f", "x");
  writeText(workspace / "tree/\xff\xfe\n*", "x");
  writeText(workspace / "-rf", "x");
  writeText(workspace / "kept", "x");
  writeText(workspace.outside + "/canary", "x");
  std::filesystem::create_symlink(workspace.outside, workspace / "tree/a/link");
  std::filesystem::create_symlink(workspace / "kept", workspace / "link");
  REQUIRE(::mkfifo((workspace / "tree/fifo").c_str(), 0600) == 0);
  requireOk(directory.removeTree(at("tree")));
  requireOk(directory.removeTree(at("link")));
  requireOk(directory.removeTree(at("-rf")));
  requireOk(directory.removeTree(at("none")));
  requireOk(directory.removeTree(at("none/none/none")));
  requireOk(directory.removeTree(at("kept/below")));
  requirePathError(directory.removeTree(at(".")), "EBUSY");
  requirePathError(directory.removeTree(at(std::string(256, 'a'))), "ENAMETOOLONG");
  CHECK(exists(workspace.outside + "/canary"));
  CHECK(readText(workspace / "kept") == "x");
  CHECK(std::distance(std::filesystem::directory_iterator(workspace.path), {}) == 1);
}

TEST_CASE("ten thousand levels need few descriptors and no stack") {
  const Workspace workspace;
  makeDeep(workspace / "deep", 10000);
  CHECK(inChild([&] {
          const rlimit files{24, 24};
          const rlimit stack{256 * 1024, 256 * 1024};
          ::setrlimit(RLIMIT_NOFILE, &files);
          ::setrlimit(RLIMIT_STACK, &stack);
          return workspace.open().removeTree(at("deep")) && !exists(workspace / "deep") ? 0 : 1;
        }) == 0);
}

TEST_CASE("a wide tree of directories with files goes in one pass") {
  const Workspace workspace;
  std::filesystem::create_directory(workspace / "wide");
  for (int index = 0; index < 5000; ++index) {
    const std::string directory = workspace / ("wide/" + std::to_string(index));
    REQUIRE(::mkdir(directory.c_str(), 0700) == 0);
    UniqueFd(::open((directory + "/f").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  }
  requireOk(workspace.open().removeTree(at("wide")));
  CHECK_FALSE(exists(workspace / "wide"));
}

TEST_CASE("directories without permission bits are no obstacle") {
  const Workspace workspace;
  handOver(workspace.base.path());
  handOver(workspace.path);
  CHECK(asOrdinaryUser([&] {
          for (const unsigned mode : {0000U, 0100U, 0200U, 0400U, 0500U, 0300U}) {
            const std::string top = workspace / ("top" + std::to_string(mode));
            std::filesystem::create_directories(top + "/inner/more");
            writeText(top + "/inner/more/f", "x");
            std::filesystem::permissions(top + "/inner", std::filesystem::perms(mode));
            std::filesystem::permissions(top, std::filesystem::perms(mode));
            if (!workspace.open().removeTree(at("top" + std::to_string(mode))) || exists(top)) {
              return 1;
            }
          }
          return 0;
        }) == 0);
}

TEST_CASE("removing can be cancelled") {
  const Workspace workspace;
  makeDeep(workspace / "deep", 10);
  std::stop_source source;
  source.request_stop();
  const Result<void> removed = workspace.open().removeTree(at("deep"), source.get_token());
  REQUIRE(removed.has_error());
  CHECK(removed.error().kind == ErrorKind::kCancelled);
}

TEST_CASE("removing ends though others fill, empty and move the tree meanwhile") {
  const Workspace workspace;
  writeText(workspace.outside + "/canary", "x");
  std::atomic<bool> done{false};
  std::thread busy([&] {
    for (int round = 0; !done; ++round) {
      const std::string deep = workspace / "tree/a/b/c";
      std::error_code ignored;
      std::filesystem::create_directories(deep, ignored);
      UniqueFd(::open((deep + "/f").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
      std::filesystem::create_symlink(workspace.outside, deep + "/l", ignored);
      static_cast<void>(::rename((workspace / "tree/a/b").c_str(), (workspace / "moved").c_str()));
      static_cast<void>(::rename((workspace / "moved").c_str(), (workspace / "tree/a/d").c_str()));
    }
  });
  const ContainedDirectory directory = workspace.open();
  for (int round = 0; round < 2000; ++round) {
    const Result<void> removed = directory.removeTree(at("tree"));
    if (!removed) {
      const std::string name = errnoOf(removed.error());
      INFO(removed.error().message);
      CHECK((name == "ENOTEMPTY" || name == "EBUSY"));
    }
  }
  done = true;
  busy.join();
  requireOk(directory.removeTree(at("tree")));
  requireOk(directory.removeTree(at("moved")));
  CHECK(readText(workspace.outside + "/canary") == "x");
}

TEST_CASE("the entries of a directory go and the directory stays") {
  const Workspace workspace;
  makeDeep(workspace / "deep", 5);
  writeText(workspace / "f", "x");
  requireOk(removeEntriesOf(workspace.open().descriptor()));
  CHECK(std::filesystem::is_empty(workspace.path));
}
