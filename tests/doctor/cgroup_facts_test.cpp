#include "backend/doctor/cgroup_facts.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "tests/doctor/fake_root.h"
#include "tests/support/forked.h"

namespace stitchkit::testing {
namespace {

constexpr const char* kOwn = "/sys/fs/cgroup/user.slice/user-1000.slice/session-1.scope";

void delegate(const FakeRoot& root, const std::string& controllers) {
  root.write(std::string(kOwn) + "/cgroup.controllers", controllers);
  root.write(std::string(kOwn) + "/cgroup.procs", "");
  root.write(std::string(kOwn) + "/cgroup.subtree_control", "");
}

// Of the ordinary user, for whom a mode means something.
std::string factsOf(const FakeRoot& root) {
  const auto outcome = runForked(
      [&root] {
        const CgroupFacts facts = readCgroupFacts(root.path());
        return std::string(facts.memory ? "memory " : "") + (facts.processes ? "processes " : "") +
               (facts.cpu ? "cpu " : "") + facts.how;
      },
      ::geteuid() == 0 ? std::optional<uid_t>(kOrdinaryUid) : std::nullopt);
  return outcome.text;
}

void open(const FakeRoot& root, const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(root.path() + directory)) {
    std::filesystem::permissions(entry.path(), std::filesystem::perms::all);
  }
  std::filesystem::permissions(root.path() + directory, std::filesystem::perms::all);
}

void close(const FakeRoot& root, const std::string& directory) {
  std::filesystem::permissions(root.path() + directory, std::filesystem::perms(0555));
}

TEST_CASE("version 2: a group that is delegated whole", "[cgroup]") {
  const FakeRoot root;
  delegate(root, "cpuset cpu io memory hugetlb pids\n");
  open(root, kOwn);
  CHECK(factsOf(root) == "memory processes cpu cgroup v2");
}

TEST_CASE("version 2: a controller that is missing, a file that may not be written", "[cgroup]") {
  const FakeRoot root;
  delegate(root, "memory pids\n");
  open(root, kOwn);
  CHECK(factsOf(root) == "memory processes cgroup v2");
  std::filesystem::permissions(root.path() + kOwn + "/cgroup.subtree_control", std::filesystem::perms(0444));
  CHECK(factsOf(root).empty());
}

TEST_CASE("version 2: a container sees its own group as the root", "[cgroup]") {
  const FakeRoot root;
  root.write("/proc/self/cgroup", "0::/\n");
  root.write("/sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n");
  root.write("/sys/fs/cgroup/cgroup.procs", "");
  root.write("/sys/fs/cgroup/cgroup.subtree_control", "");
  close(root, "/sys/fs/cgroup");
  CHECK(factsOf(root).empty());
  open(root, "/sys/fs/cgroup");
  CHECK(factsOf(root) == "memory processes cpu cgroup v2");
}

TEST_CASE("version 1: each controller for itself", "[cgroup]") {
  const FakeRoot root;
  root.write("/proc/self/mountinfo",
             "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
             "35 31 0:32 /outer /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
             "39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n");
  root.write("/proc/self/cgroup", "8:pids:/\n4:memory:/outer/mine\n1:cpu,cpuacct:/\n");
  root.write("/sys/fs/cgroup/cpu,cpuacct/tasks", "");
  root.write("/sys/fs/cgroup/memory/mine/tasks", "");
  root.write("/sys/fs/cgroup/pids/tasks", "");
  open(root, "/sys/fs/cgroup/cpu,cpuacct");
  open(root, "/sys/fs/cgroup/memory/mine");
  close(root, "/sys/fs/cgroup/pids");
  CHECK(factsOf(root) == "memory cpu cgroup v1");
}

TEST_CASE("no cgroups at all", "[cgroup]") {
  const FakeRoot root;
  root.write("/proc/self/mountinfo", "22 27 0:21 / /proc rw,relatime - proc proc rw\n");
  CHECK(factsOf(root).empty());
}

}  // namespace
}  // namespace stitchkit::testing
