#include "codingtools/tree_walk.h"

#include "tests/codingtools/test_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace stitchkit;
using namespace stitchkit::test;

namespace {

struct Walked {
  std::vector<std::string> paths;
  WalkCounts counts;
  bool truncated = false;
  std::vector<std::string> denied;
};

bool operator==(const Walked& a, const Walked& b) {
  return a.paths == b.paths && a.truncated == b.truncated && a.denied == b.denied && a.counts.files == b.counts.files &&
         a.counts.denied == b.counts.denied && a.counts.skippedDirectories == b.counts.skippedDirectories &&
         a.counts.skippedSymlinks == b.counts.skippedSymlinks;
}

Result<Walked> tryWalk(const Workspace& workspace, const WalkOptions& options, const std::string& path = ".",
                       const std::stop_token& stop = {}) {
  const ContainedDirectory directory = workspace.open();
  Result<TreeWalk> walk = TreeWalk::open(directory, at(path), options, stop);
  if (!walk) {
    return walk.error();
  }
  Walked walked;
  for (;;) {
    const Result<const WalkedFile*> file = walk->next();
    if (!file) {
      return file.error();
    }
    if (*file == nullptr) {
      break;
    }
    struct stat status {};
    REQUIRE(::fstatat((*file)->directory->get(), (*file)->name, &status, AT_SYMLINK_NOFOLLOW) == 0);
    walked.paths.emplace_back((*file)->path);
  }
  walked.counts = walk->counts();
  walked.truncated = walk->truncated();
  for (const DeniedPath& denied : walk->denied()) {
    walked.denied.push_back(denied.path + (denied.directory ? "/" : ""));
  }
  return walked;
}

Walked walk(const Workspace& workspace, const WalkOptions& options = {}, const std::string& path = ".") {
  Result<Walked> walked = tryWalk(workspace, options, path);
  requireOk(walked);
  return std::move(*walked);
}

/// Answers by a function and keeps what it was asked.
class TestGate : public PathGate {
 public:
  explicit TestGate(std::function<bool(const std::string&)> permits) : permits_(std::move(permits)) {}

  Result<std::vector<bool>> allowed(const std::vector<std::string>& paths, const std::stop_token&) override {
    requests.push_back(paths);
    std::vector<bool> answers;
    for (const std::string& path : paths) {
      answers.push_back(permits_(path));
    }
    return answers;
  }

  [[nodiscard]] std::set<std::string> asked() const {
    std::set<std::string> all;
    for (const auto& request : requests) {
      all.insert(request.begin(), request.end());
    }
    return all;
  }

  std::vector<std::vector<std::string>> requests;

 private:
  std::function<bool(const std::string&)> permits_;
};

}  // namespace

TEST_CASE("a walk goes depth first in the order of names") {
  const Workspace workspace;
  for (const char* path : {"b", "A", "a/z", "a-b", "B/c", "_"}) {
    put(workspace, path);
  }
  CHECK(walk(workspace).paths == std::vector<std::string>{"_", "a/z", "A", "a-b", "b", "B/c"});
}

TEST_CASE("a walk sees regular files only") {
  const Workspace workspace;
  put(workspace, "d/a.ts");
  put(workspace, std::string("bad\xFF"));
  put(workspace, std::string("bad\xFE") + "/a");
  writeText(workspace.outside + "/secret", "x");
  REQUIRE(::symlink("d", (workspace / "ld").c_str()) == 0);
  REQUIRE(::symlink("..", (workspace / "up").c_str()) == 0);
  REQUIRE(::symlink(workspace.outside.c_str(), (workspace / "d/out").c_str()) == 0);
  REQUIRE(::mkfifo((workspace / "p").c_str(), 0600) == 0);
  REQUIRE(::mkdir((workspace / "node_modules").c_str(), 0700) == 0);
  put(workspace, "node_modules/a");
  put(workspace, "d/node_modules/a");
  WalkOptions options;
  options.rules.passedOver = {"node_modules"};
  const Walked walked = walk(workspace, options);
  CHECK(walked.paths == std::vector<std::string>{"d/a.ts"});
  CHECK(walked.counts.skippedSymlinks == 3);
  CHECK(walked.counts.skippedDirectories == 2);
  CHECK_FALSE(walked.truncated);
}

TEST_CASE("a walk keeps below its path and names what it finds from the top") {
  const Workspace workspace;
  put(workspace, "a");
  put(workspace, "src/b/c");
  put(workspace, "src2/x");
  REQUIRE(::symlink("src", (workspace / "l").c_str()) == 0);
  const Walked walked = walk(workspace, {}, "src");
  CHECK(walked.paths == std::vector<std::string>{"src/b/c"});
  CHECK(walked.counts.files == 1);
  requirePathError(tryWalk(workspace, {}, "nope"), "ENOENT");
  requirePathError(tryWalk(workspace, {}, "a"), "ENOTDIR");
  requirePathError(tryWalk(workspace, {}, "l"), "ELOOP");
  requirePathError(tryWalk(workspace, {}, "l/b"), "ELOOP");
}

TEST_CASE("limits end a branch or the walk and say so") {
  const Workspace workspace;
  for (const char* path : {"a/b/c/deep", "m/file", "z"}) {
    put(workspace, path);
  }
  WalkOptions options;
  options.maxDepth = 2;
  Walked walked = walk(workspace, options);
  CHECK(walked.paths == std::vector<std::string>{"m/file", "z"});
  CHECK(walked.truncated);
  options = {};
  options.maxFiles = 2;
  walked = walk(workspace, options);
  CHECK(walked.paths == std::vector<std::string>{"a/b/c/deep", "m/file"});
  CHECK(walked.truncated);
  options.maxFiles = 3;
  CHECK_FALSE(walk(workspace, options).truncated);
  options.maxFiles = 1;
  options.rules.counts = [](std::string_view path) { return path == "z"; };
  walked = walk(workspace, options);
  CHECK(walked.paths == std::vector<std::string>{"z"});
  CHECK(walked.counts.files == 1);
  CHECK_FALSE(walked.truncated);
}

TEST_CASE("what the gate denies is named and neither entered nor counted") {
  const Workspace workspace;
  for (const char* path : {".env", "a", "secret/a", "src/.env", "src/b"}) {
    put(workspace, path);
  }
  TestGate gate([](const std::string& path) { return path != "secret" && path.find(".env") == std::string::npos; });
  WalkOptions options;
  options.gate = &gate;
  Walked walked = walk(workspace, options);
  CHECK(walked.paths == std::vector<std::string>{"a", "src/b"});
  CHECK(walked.denied == std::vector<std::string>{".env", "secret/", "src/.env"});
  CHECK(walked.counts.denied == 3);
  CHECK(gate.requests == std::vector<std::vector<std::string>>{{".env", "a", "secret", "src"}, {"src/.env", "src/b"}});
  options.maxDenied = 1;
  walked = walk(workspace, options);
  CHECK(walked.denied == std::vector<std::string>{".env"});
  CHECK(walked.counts.denied == 3);
}

TEST_CASE("a gate that fails or answers with another number ends the walk") {
  class Broken : public PathGate {
   public:
    Result<std::vector<bool>> allowed(const std::vector<std::string>& paths, const std::stop_token&) override {
      if (paths.front() == "d") {
        return std::vector<bool>{true};
      }
      return short_ ? Result<std::vector<bool>>(std::vector<bool>{})
                    : Error(ErrorKind::kForbidden, "The host did not answer");
    }
    bool short_ = false;
  };
  const Workspace workspace;
  put(workspace, "d/a");
  Broken gate;
  WalkOptions options;
  options.gate = &gate;
  CHECK(tryWalk(workspace, options).error().kind == ErrorKind::kForbidden);
  gate.short_ = true;
  CHECK(tryWalk(workspace, options).error().kind == ErrorKind::kForbidden);
}

TEST_CASE("the gate is asked about many directories at once, each path once, and the result stays the same") {
  const Workspace workspace;
  std::set<std::string> all;
  for (int top = 0; top < 12; ++top) {
    for (int below = 0; below < 12; ++below) {
      const std::string directory = std::to_string(top) + "/d" + std::to_string(below);
      put(workspace, directory + "/x");
      put(workspace, directory + "/e/y");
      all.insert({std::to_string(top), directory, directory + "/x", directory + "/e", directory + "/e/y"});
    }
  }
  REQUIRE(::mkdir((workspace / "3/node_modules").c_str(), 0700) == 0);
  REQUIRE(::symlink("x", (workspace / "4/d1/l").c_str()) == 0);
  TestGate gate([](const std::string&) { return true; });
  WalkOptions options;
  options.rules.passedOver = {"node_modules"};
  const Walked without = walk(workspace, options);
  options.gate = &gate;
  CHECK(walk(workspace, options) == without);
  CHECK(gate.asked() == all);
  CHECK(gate.requests.size() == 4);
  std::size_t asked = 0;
  for (const auto& request : gate.requests) {
    asked += request.size();
  }
  CHECK(asked == all.size());
  options.maxFiles = 77;
  const Walked some = walk(workspace, options);
  options.gate = nullptr;
  CHECK(walk(workspace, options) == some);
}

TEST_CASE("a directory with more entries than are held at once is walked whole") {
  const Workspace workspace;
  constexpr std::size_t kMany = 9500;
  for (std::size_t i = 0; i < kMany; ++i) {
    const std::string name = std::to_string(i);
    REQUIRE(::mkdir((workspace / name).c_str(), 0700) == 0);
    if (i % 100 == 0) {
      put(workspace, name + "/x");
    }
  }
  const Walked without = walk(workspace);
  CHECK(without.paths.size() == kMany / 100);
  TestGate gate([](const std::string&) { return true; });
  WalkOptions options;
  options.gate = &gate;
  CHECK(walk(workspace, options) == without);
  CHECK(gate.asked().size() == kMany + kMany / 100);
}

TEST_CASE("a deep tree needs few descriptors") {
  const Workspace workspace;
  std::string path;
  std::vector<std::string> expected;
  for (int i = 0; i < 60; ++i) {
    put(workspace, path + "a");
    put(workspace, path + "z");
    expected.insert(expected.begin() + i, path + "a");
    expected.insert(expected.begin() + i + 1, path + "z");
    path += "dir/";
  }
  WalkOptions options;
  options.maxDepth = 100;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int probe = ::dup(0);
  ::close(probe);
  const rlimit few{static_cast<rlim_t>(probe + 16), before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  const Result<Walked> walked = tryWalk(workspace, options);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  requireOk(walked);
  CHECK(walked->paths == expected);
}

TEST_CASE("paths that are too long to be named are left out") {
  const Workspace workspace;
  const std::string name(200, 'n');
  UniqueFd directory(::open(workspace.path.c_str(), O_PATH | O_DIRECTORY));
  for (int i = 0; i < 40; ++i) {
    REQUIRE(::mkdirat(directory.get(), name.c_str(), 0700) == 0);
    UniqueFd next(::openat(directory.get(), name.c_str(), O_PATH | O_DIRECTORY));
    directory = std::move(next);
    const UniqueFd file(::openat(directory.get(), "z", O_CREAT | O_WRONLY, 0600));
    REQUIRE(file);
  }
  WalkOptions options;
  options.maxDepth = 100;
  const Walked walked = walk(workspace, options);
  CHECK(walked.paths.size() == 20);
  CHECK(walked.truncated);
}

TEST_CASE("a walk can be cancelled") {
  const Workspace workspace;
  put(workspace, "a");
  std::stop_source stop;
  stop.request_stop();
  CHECK(tryWalk(workspace, {}, ".", stop.get_token()).error().kind == ErrorKind::kCancelled);
}

TEST_CASE("a directory that is swapped with a link to the outside leads no walk outside") {
  const Workspace workspace;
  put(workspace, "d/inside");
  writeText(workspace.outside + "/secret", "x");
  REQUIRE(::symlink(workspace.outside.c_str(), (workspace / "l").c_str()) == 0);
  std::atomic<bool> done{false};
  std::thread guest([&] {
    while (!done) {
      static_cast<void>(
          ::renameat2(AT_FDCWD, (workspace / "d").c_str(), AT_FDCWD, (workspace / "l").c_str(), RENAME_EXCHANGE));
    }
  });
  std::size_t seen = 0;
  bool escaped = false;
  for (int i = 0; i < 3000; ++i) {
    const ContainedDirectory directory = workspace.open();
    Result<TreeWalk> tree = TreeWalk::open(directory, WorkspacePath::root(), {}, {});
    REQUIRE(tree.has_value());
    for (auto file = tree->next(); file && *file != nullptr; file = tree->next()) {
      ++seen;
      escaped = escaped || (*file)->path.find("secret") != std::string_view::npos;
    }
  }
  done = true;
  guest.join();
  CHECK_FALSE(escaped);
  CHECK(seen > 0);
}
