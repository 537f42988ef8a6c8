// What bubblewrap says, on which machine, and what it means. The words are those of its versions 0.4 to 0.11.
#include "backend/diagnosis/set_up_cause.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <string>

namespace stitchkit {
namespace {

const std::string kNoPermission =
    "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user "
    "namespaces. See <https://deb.li/bubblewrap> or <file:///usr/share/doc/bubblewrap/README.Debian.gz>.\n";
const std::string kNoPermissionOlder =
    "bwrap: No permissions to creating new namespace, likely because the kernel does not allow non-privileged user "
    "namespaces. On e.g. debian this can be enabled with 'sysctl kernel.unprivileged_userns_clone=1'.\n";

std::string causeName(const std::string& words, const MachineFacts& machine = {}, const ProgramFacts& program = {}) {
  return textOf(causeOfSetUp(words, machine, program)).name;
}

TEST_CASE("the program itself", "[words]") {
  CHECK(causeName("bwrap: Unknown option --disable-userns\n") == "bwrap-too-old");
  CHECK(causeName("bwrap: Unknown option --size\n") == "bwrap-too-old");
  CHECK(causeName("bwrap: The --size option is not permitted in setuid mode\n") == "bwrap-setuid");
  CHECK(causeName("bwrap: Unexpected setuid user 1, should be 0\n") == "bwrap-setuid");
  CHECK(causeName("bwrap: setuid use is not supported\n", {}, {0, true, false}) == "bwrap-setuid");
  CHECK(causeName("bwrap: Unexpected capabilities but not setuid, old file caps config?\n") == "bwrap-capabilities");
  CHECK(causeName("") == "bwrap-unknown");
  CHECK(causeName("false: no such thing\n") == "bwrap-unknown");
  CHECK(causeName("bwrap: something that nobody has seen yet\n") == "set-up-failed");
}

TEST_CASE("a refused namespace, by what the machine says", "[words]") {
  const std::string words = GENERATE(from_range(std::vector<std::string>{
      kNoPermission, kNoPermissionOlder, "bwrap: Creating new namespace failed: Operation not permitted\n"}));
  MachineFacts machine;
  CHECK(causeName(words, machine) == "user-namespaces-refused");
  machine.appArmorRestricts = true;
  CHECK(causeName(words, machine) == "apparmor-restricts-user-namespaces");
  machine.filtered = true;
  CHECK(causeName(words, machine) == "seccomp-filter");
  machine.container = "Docker";
  CHECK(causeName(words, machine) == "container-seccomp");
  machine.limitsAtZero = {"user.max_user_namespaces"};
  CHECK(causeName(words, machine) == "user-namespaces-limited");
  machine.unprivilegedNamespaces = false;
  CHECK(causeName(words, machine) == "user-namespaces-disabled");
}

TEST_CASE("namespaces that are not there, or used up", "[words]") {
  CHECK(causeName("bwrap: Creating new namespace failed, likely because the kernel does not support user namespaces.  "
                  "bwrap must be installed setuid on such systems.\n") == "user-namespaces-disabled");
  CHECK(causeName("bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded "
                  "(ENOSPC)\n") == "user-namespaces-limited");
  CHECK(causeName("bwrap: Creating new namespace failed: No space left on device\n") == "user-namespaces-limited");
}

TEST_CASE("a namespace without rights is AppArmor's way", "[words]") {
  MachineFacts ubuntu;
  ubuntu.appArmorRestricts = true;
  for (const char* words : {"bwrap: setting up uid map: Permission denied\n",
                            "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted\n",
                            "bwrap: Failed to make / slave: Permission denied\n"}) {
    CAPTURE(words);
    CHECK(causeName(words, ubuntu) == "apparmor-restricts-user-namespaces");
  }
  CHECK(causeName("bwrap: setting up uid map: Permission denied\n") == "user-namespaces-refused");
}

TEST_CASE("mounts", "[words]") {
  CHECK(causeName("bwrap: Can't mount proc on /newroot/proc: Operation not permitted\n") == "proc-masked");
  CHECK(causeName("bwrap: cannot open /proc/sys/user/max_user_namespaces: Read-only file system\n") == "proc-masked");
  CHECK(causeName("bwrap: Can't read /proc/sys/kernel/overflowuid: No such file or directory\n") == "proc-masked");
  MachineFacts docker;
  docker.container = "Docker";
  docker.appArmorRestricts = true;
  CHECK(causeName("bwrap: Failed to make / slave: Permission denied\n", docker) == "mounts-refused");
  CHECK(causeName("bwrap: Failed to mount tmpfs: Permission denied\n", docker) == "mounts-refused");
}

TEST_CASE("filters", "[words]") {
  CHECK(causeName("bwrap: prctl(PR_SET_SECCOMP): Operation not permitted\n") == "seccomp-unavailable");
  CHECK(causeName("bwrap: Unable to set up system call filtering as requested: prctl(PR_SET_SECCOMP) reported EINVAL. "
                  "(Hint: this requires a kernel configured with CONFIG_SECCOMP and CONFIG_SECCOMP_FILTER.)\n") ==
        "seccomp-unavailable");
}

TEST_CASE("what the guest is lent", "[words]") {
  CHECK(causeName("bwrap: execvp /run/stitchkit-launch: Permission denied\n") == "state-directory-noexec");
  CHECK(causeName("bwrap: Can't find source path /x/y: Permission denied\n") == "state-directory-not-searchable");
  CHECK(causeName("bwrap: Can't find source path /x/y: No such file or directory\n") == "state-directory-changed");
}

TEST_CASE("a namespace that is no process's for want of processes", "[words]") {
  CHECK(causeName("bwrap: Creating new namespace failed: Resource temporarily unavailable\n") == "processes-limited");
}

TEST_CASE("what only tells its version is too old by it, or something else", "[words]") {
  CHECK(causeName("bubblewrap 0.4.0\n") == "bwrap-too-old");
  CHECK(causeName("warning\nbubblewrap 0.4.0") == "bwrap-too-old");
  CHECK(causeName("bubblewrap 0.9.0\n") == "bwrap-unknown");
}

TEST_CASE("a program that cannot be started", "[words]") {
  const auto name = [](int error) { return std::string(textOf(causeOfSpawn(error, ProgramFacts{error})).name); };
  CHECK(name(ENOENT) == "bwrap-missing");
  CHECK(name(ENOTDIR) == "bwrap-missing");
  CHECK(name(EACCES) == "bwrap-not-executable");
  CHECK(name(ENOEXEC) == "bwrap-unknown");
  CHECK(name(EMFILE) == "open-files-limited");
  CHECK(name(EAGAIN) == "processes-limited");
  CHECK(name(EIO) == "set-up-failed");
  CHECK(causeOfSpawn(ENOENT, ProgramFacts{}) == Cause::kBubblewrapUnknown);  // it is there, its interpreter is not
}

TEST_CASE("a state directory that cannot be used", "[words]") {
  const auto name = [](int error) {
    const auto cause = causeOfStorage(error);
    return std::string(cause ? textOf(*cause).name : "");
  };
  CHECK(name(EROFS) == "state-directory-not-writable");
  CHECK(name(EACCES) == "state-directory-not-writable");
  CHECK(name(ENOSPC) == "state-directory-full");
  CHECK(name(EDQUOT) == "state-directory-full");
  CHECK(name(ENOLCK) == "state-directory-file-system");
  CHECK(name(EIO).empty());
}

}  // namespace
}  // namespace stitchkit
