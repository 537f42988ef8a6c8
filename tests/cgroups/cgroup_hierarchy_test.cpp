// What machines say about their control groups.
#include <catch2/catch.hpp>

#include "backend/cgroups/cgroup_files.h"
#include "backend/cgroups/cgroup_hierarchy.h"

namespace stitchkit {
namespace {

using Hierarchies = std::vector<CgroupHierarchy>;

TEST_CASE("version 1: each controller by itself, or a few together") {
  const Hierarchies found = parseCgroupHierarchies(
      "33 32 0:29 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
      "34 32 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "35 32 0:31 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n",
      "9:devices:/a\n4:memory:/b/c\n1:cpu,cpuacct:/\n0::/\n");
  REQUIRE(found.size() == 2);
  CHECK(found[0].version == 1);
  CHECK(found[0].controllers == std::vector<std::string>{"memory"});
  CHECK(found[0].own == "/sys/fs/cgroup/memory/b/c");
  CHECK(found[1].controllers == std::vector<std::string>{"cpu"});
  CHECK(found[1].own == "/sys/fs/cgroup/cpu,cpuacct");
}

TEST_CASE("version 2, and both versions") {
  const std::string mounts =
      "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
      "33 32 0:29 / /run/pids rw - cgroup cgroup rw,pids\n";
  const Hierarchies found = parseCgroupHierarchies(mounts, "4:pids:/x\n0::/user.slice/run-1.scope\n");
  REQUIRE(found.size() == 2);
  CHECK(found[0].version == 2);
  CHECK(found[0].own == "/sys/fs/cgroup/user.slice/run-1.scope");
  CHECK(found[1].own == "/run/pids/x");
}

TEST_CASE("a container sees a part of the hierarchy, or what it cannot name") {
  const auto own = [](const std::string& root, const std::string& path) {
    return parseCgroupHierarchies("30 23 0:26 " + root + " /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
                                  "0::" + path + "\n")
        .at(0)
        .own;
  };
  CHECK(own("/docker/1", "/docker/1") == "/sys/fs/cgroup");
  CHECK(own("/docker/1", "/docker/1/inner") == "/sys/fs/cgroup/inner");
  CHECK(own("/docker/1", "/docker/12") == "/sys/fs/cgroup");
  CHECK(own("/", "/../../outside") == "/sys/fs/cgroup");
}

TEST_CASE("spaces in paths, and lines that are none") {
  const Hierarchies found =
      parseCgroupHierarchies("30 23 0:26 / /mnt/a\\040b rw - cgroup2 cgroup rw\nnonsense\n\n1 2 3\n", "0::/\nx\n");
  REQUIRE(found.size() == 1);
  CHECK(found[0].mountPoint == "/mnt/a b");
  CHECK(parseCgroupHierarchies("", "").empty());
  CHECK(parseCgroupHierarchies("30 23 0:26 / /m rw - cgroup2 cgroup rw\n", "").empty());
}

TEST_CASE("counters in files of events") {
  CHECK(cgroupCounter("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n", "oom_kill") == 7);
  CHECK(cgroupCounter("low 0\nhigh 0\nmax 12", "max") == 12);
  CHECK(cgroupCounter("", "max") == 0);
  CHECK(cgroupCounter("maximum 3\n", "max") == 0);
}

}  // namespace
}  // namespace stitchkit
