// Version 2 on this machine's kernel: groups that hand controllers on hold no processes, and a process is born into
// one. Which controllers there are is the machine's affair; any one serves.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <filesystem>

#include "backend/cgroups/cgroup_delegation.h"
#include "backend/cgroups/cgroup_files.h"
#include "backend/cgroups/cgroup_tree.h"
#include "backend/launch/guest_launcher.h"
#include "tests/support/forked.h"
#include "tests/support/scratch.h"

namespace stitchkit::testing {
namespace {

/// The hierarchy of version 2, and one of its controllers that may be handed on.
struct Machine {
  CgroupHierarchy hierarchy;
  std::string controller;
};

Machine machine() {
  for (CgroupHierarchy& hierarchy :
       parseCgroupHierarchies(readFile("/proc/self/mountinfo"), readFile("/proc/self/cgroup"))) {
    if (hierarchy.version == 2) {
      std::string controllers = readFile(hierarchy.mountPoint + "/cgroup.controllers");
      return {hierarchy, controllers.substr(0, controllers.find_first_of(" \n"))};
    }
  }
  throw std::runtime_error("no cgroup2 is mounted here");
}

/// A group below the mount point, as an operator would delegate one. It goes with all below.
class Group {
 public:
  explicit Group(const Machine& on) : path_(on.hierarchy.mountPoint + "/stitchkit-test-" + uniqueDigits()) {
    writeCgroupFile(on.hierarchy.mountPoint + "/cgroup.subtree_control", "+" + on.controller);
    REQUIRE(::mkdir(path_.c_str(), 0755) == 0);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() {
    std::error_code failure;
    for (const auto& base : std::filesystem::directory_iterator(path_, failure)) {
      if (base.is_directory(failure)) {
        for (const auto& instance : std::filesystem::directory_iterator(base.path(), failure)) {
          removeCgroups(instance.path());
        }
        ::rmdir(base.path().c_str());
      }
    }
    CHECK(::rmdir(path_.c_str()) == 0);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

CgroupDelegation delegateIn(const Group& group, const Machine& on) {
  CgroupHierarchy hierarchy = on.hierarchy;
  hierarchy.own = group.path();
  const char* name = on.controller.c_str();
  return delegateCgroups({}, {hierarchy}, {name, name, name});
}

std::string describe(const CgroupDelegation& delegation) {
  const auto& base = delegation.base(CgroupController::kMemory);
  return base ? std::to_string(base->version) + " " + base->directory : "none: " + delegation.note;
}

TEST_CASE("a sidecar alone in its group hands controllers on from there") {
  const Machine on = machine();
  const Group group(on);
  const ForkedOutcome outcome = runForked([&] {
    writeCgroupFile(group.path() + "/cgroup.procs", "0");
    const CgroupDelegation delegation = delegateIn(group, on);
    const auto& base = delegation.base(CgroupController::kMemory);
    return describe(delegation) + "|" + (base ? readFile(base->directory + "/cgroup.subtree_control") : "") + "|" +
           readFile("/proc/self/cgroup");
  });
  CAPTURE(outcome.text);
  CHECK(outcome.text.starts_with("2 " + group.path() + "/stitchkit-sandbox-"));
  CHECK(outcome.text.find("|" + on.controller + "\n|") != std::string::npos);
  CHECK(outcome.text.find("/sidecar\n") != std::string::npos);
}

TEST_CASE("what a dead sidecar has left in the group goes when the next one begins, and what a live one has stays") {
  const Machine on = machine();
  const Group group(on);
  const ForkedOutcome outcome = runForked([&] {
    writeCgroupFile(group.path() + "/cgroup.procs", "0");
    const CgroupDelegation delegation = delegateIn(group, on);
    const auto& base = delegation.base(CgroupController::kMemory);
    if (!base) {
      return describe(delegation);
    }
    const auto beside = std::filesystem::path(base->directory).parent_path();
    std::filesystem::create_directories(beside / "4194305" / "sidecar");
    std::filesystem::create_directory(beside / "4194306");
    const UniqueFd live(::open((beside / "4194306").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ::flock(live.get(), LOCK_EX);
    const CgroupTree tree(delegation);
    std::string left;
    for (const char* name : {"4194305", "4194306"}) {
      left += std::filesystem::exists(beside / name) ? std::string(name) + " " : "";
    }
    return left + (std::filesystem::exists(base->directory) ? "own" : "");
  });
  CHECK(outcome.text == "4194306 own");
}

TEST_CASE("where others share its group it stays where it was and says so") {
  const Machine on = machine();
  const Group group(on);
  const pid_t other = ::fork();
  if (other == 0) {
    ::pause();
    ::_exit(0);
  }
  REQUIRE(writeCgroupFile(group.path() + "/cgroup.procs", std::to_string(other)) == 0);
  const ForkedOutcome outcome = runForked([&] {
    writeCgroupFile(group.path() + "/cgroup.procs", "0");
    const CgroupDelegation delegation = delegateIn(group, on);
    return describe(delegation) + "|" + readFile("/proc/self/cgroup");
  });
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  CAPTURE(outcome.text);
  CHECK(outcome.text.find("other processes") != std::string::npos);
  CHECK(outcome.text.find("/sidecar") == std::string::npos);
}

TEST_CASE("a program is born in the group that it is started into") {
  const Machine on = machine();
  const Group group(on);
  const UniqueFd directory(::open(group.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int ends[2] = {-1, -1};
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  boost::asio::io_context io;
  boost::system::error_code error;
  const GuestLauncher launcher{
      "cat", {writing.get(), writing.get()}, LaunchPriority::kBackground, CgroupJoin{{}, directory.get()}};
  auto process = launcher(io.get_executor(), error, "/usr/bin/cat", {"/proc/self/cgroup"});
  REQUIRE(!error);
  process.wait();
  writing.reset();
  char text[4096] = {};
  REQUIRE(::read(reading.get(), text, sizeof text - 1) > 0);
  CHECK(std::string(text).find("0::/" + std::filesystem::path(group.path()).filename().string()) != std::string::npos);
  const GuestLauncher nowhere{"cat", {}, LaunchPriority::kNormal, CgroupJoin{{}, directory.get()}};
  nowhere(io.get_executor(), error, "/nonexistent", {});
  CHECK(error.value() == ENOENT);
}

}  // namespace
}  // namespace stitchkit::testing
