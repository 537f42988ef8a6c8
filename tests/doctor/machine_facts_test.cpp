#include "backend/diagnosis/machine_facts.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <vector>

#include "tests/doctor/fake_root.h"

namespace stitchkit::testing {
namespace {

using Strings = std::vector<std::string>;

TEST_CASE("a machine on which nothing is wrong", "[facts]") {
  const FakeRoot root;
  const MachineFacts facts = readMachineFacts(root.path());
  CHECK(facts.userNamespaces);
  CHECK(!facts.unprivilegedNamespaces.has_value());
  CHECK(!facts.appArmorRestricts);
  CHECK(facts.limitsAtZero.empty());
  CHECK(!facts.filtered);
  CHECK(facts.container.empty());
  CHECK(facts.coveredProcEntries.empty());
}

TEST_CASE("switches of the kernel", "[facts]") {
  const FakeRoot root;
  SECTION("Debian's, off") {
    root.write("/proc/sys/kernel/unprivileged_userns_clone", "0\n");
    CHECK(readMachineFacts(root.path()).unprivilegedNamespaces == false);
  }
  SECTION("Debian's, on") {
    root.write("/proc/sys/kernel/unprivileged_userns_clone", "1\n");
    CHECK(readMachineFacts(root.path()).unprivilegedNamespaces == true);
  }
  SECTION("Ubuntu's") {
    root.write("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
    CHECK(readMachineFacts(root.path()).appArmorRestricts);
    root.write("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0\n");
    CHECK(!readMachineFacts(root.path()).appArmorRestricts);
  }
  SECTION("a kernel without user namespaces") {
    root.remove("/proc/self/ns/user");
    CHECK(!readMachineFacts(root.path()).userNamespaces);
  }
  SECTION("limits") {
    root.write("/proc/sys/user/max_user_namespaces", "0\n");
    root.write("/proc/sys/user/max_net_namespaces", "0\n");
    CHECK(readMachineFacts(root.path()).limitsAtZero == Strings{"user.max_user_namespaces", "user.max_net_namespaces"});
  }
  SECTION("a filter") {
    root.write("/proc/self/status", "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n");
    CHECK(readMachineFacts(root.path()).filtered);
  }
}

TEST_CASE("containers by their marks", "[facts]") {
  const FakeRoot root;
  const auto container = [&root] { return readMachineFacts(root.path()).container; };
  SECTION("Docker's file") {
    root.write("/.dockerenv", "");
    CHECK(container() == "Docker");
  }
  SECTION("Podman's file") {
    root.write("/run/.containerenv", "");
    CHECK(container() == "Podman");
  }
  SECTION("groups") {
    root.write("/proc/self/cgroup", "4:memory:/docker/c31bfa1805bed8\n0::/\n");
    CHECK(container() == "Docker");
    root.write("/proc/self/cgroup", "0::/kubepods.slice/kubepods-besteffort.slice/cri-containerd-1.scope\n");
    CHECK(container() == "Kubernetes");
    root.write("/proc/self/cgroup", "0::/machine.slice/libpod-1.scope\n");
    CHECK(container() == "Podman");
    root.write("/proc/self/cgroup", "0::/lxc.payload.one/init.scope\n");
    CHECK(container() == "LXC");
  }
}

TEST_CASE("what Docker covers of /proc is found, and what covers nothing is not", "[facts]") {
  const FakeRoot root;
  root.write("/proc/self/mountinfo",
             "1 0 0:1 / /proc rw - proc proc rw\n"
             "2 1 0:2 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw\n"
             "3 1 0:3 / /proc/fs/nfsd rw - nfsd nfsd rw\n"
             "4 1 0:4 /sys /proc/sys ro,relatime - proc proc rw\n"
             "5 1 0:5 / /proc/acpi ro,relatime - tmpfs tmpfs ro\n"
             "6 1 0:6 /null /proc/kcore rw,nosuid - tmpfs tmpfs rw,size=65536k\n"
             "7 0 0:7 / /processes rw - ext4 /dev/sda rw\n");
  CHECK(readMachineFacts(root.path()).coveredProcEntries == Strings{"/proc/sys", "/proc/acpi", "/proc/kcore"});
}

TEST_CASE("nothing at all to read is no news", "[facts]") {
  const ScratchFolder empty;
  const MachineFacts facts = readMachineFacts(empty.path());
  CHECK(!facts.userNamespaces);
  CHECK(facts.limitsAtZero.empty());
  CHECK(facts.coveredProcEntries.empty());
}

}  // namespace
}  // namespace stitchkit::testing
