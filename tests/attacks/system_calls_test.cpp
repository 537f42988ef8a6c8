// What a guest may ask of the kernel. The control asks the same outside: what the kernel itself says there is not what
// the filter says.
#include "tests/attacks/attempts.h"

#include <catch2/catch.hpp>

namespace stitchkit::testing {
namespace {

const std::map<std::string, std::set<std::string>> kRefused = {
    {"ENOSYS", {"clone3",
                "add_key",
                "request_key",
                "keyctl",
                "io_uring_setup",
                "io_uring_enter",
                "io_uring_register",
                "userfaultfd",
                "memfd_secret",
                "open_tree",
                "move_mount",
                "fsopen",
                "fsconfig",
                "fsmount",
                "fspick",
                "mount_setattr",
                "statmount",
                "listmount",
                "open_tree_attr",
                "socketcall"}},
    {"EPERM",
     {"ptrace",
      "ptrace-me",
      "process_vm_readv",
      "process_vm_writev",
      "kcmp",
      "pidfd_getfd",
      "settimeofday",
      "clone-user",
      "clone-user-upper-half",
      "bpf",
      "perf_event_open",
      "syslog",
      "init_module",
      "finit_module",
      "delete_module",
      "kexec_load",
      "kexec_file_load",
      "mount",
      "umount",
      "umount2",
      "pivot_root",
      "chroot",
      "swapon",
      "swapoff",
      "quotactl",
      "quotactl_fd",
      "acct",
      "fanotify_init",
      "open_by_handle_at",
      "setns",
      "unshare-user",
      "unshare-user-upper-half",
      "unshare-user-and-files",
      "reboot",
      "clock_settime",
      "clock_settime64",
      "ioctl-sti",
      "ioctl-sti-upper-half",
      "ioctl-linux",
      "ioctl-linux-upper-half",
      "ioctl-setd",
      "iopl",
      "ioperm"}},
    {"EOPNOTSUPP", {"name_to_handle_at"}},
    {"EAFNOSUPPORT", {"socket-packet", "socket-packet-upper-half", "socketpair-packet"}},
    {"EPROTONOSUPPORT", {"netlink-diag", "netlink-diag-upper-half", "netlink-uevent"}}};

// By either interface.
std::string expected(std::string name) {
  if (name.find("stays-") != std::string::npos) {
    return "ok";
  }
  if (name.starts_with("x32-")) {
    return "ENOSYS";
  }
  if (name.starts_with("i386-")) {
    name.erase(0, 5);
  }
  for (const auto& [error, names] : kRefused) {
    if (names.count(name) == 1) {
      return error;
    }
  }
  return "nothing that this test knows";
}

// A kernel without the interface of 32-bit programs ends them.
bool hasI386(const Attempts& attempts) {
  const auto asked = attempts.find("i386-stays-getpid");
  return asked != attempts.end() && asked->second == "ok";
}

void checkRefused(const Attempts& attempts) {
  REQUIRE(attempts.size() > 60);
  for (const auto& [name, outcome] : attempts) {
    CAPTURE(name);
    if (name.starts_with("i386-") && !hasI386(attempts)) {
      CHECK(outcome == "SIGSEGV");
    } else {
      CHECK(outcome == expected(name));
    }
  }
}

TEST_CASE("the kernel's other doors are closed to a guest, under every policy, and what programs need is not") {
  const Footing footing = GENERATE(from_range(footings()));
  CAPTURE(footing);
  Sidecar sidecar(optionsFor(footing));
  for (const Json& policy : {Json("deny-all"), Json("allow-all"), Json{{"allow", Json::array()}}}) {
    Session session(sidecar, policy);
    const auto tries = session.run({session.install("system_calls")});
    CAPTURE(policy, tries.out, tries.err);
    REQUIRE(tries.exitCode == 0);
    checkRefused(attemptsOf(tries.out));
  }
}

TEST_CASE("control: outside the kernel answers the same calls itself, and otherwise") {
  std::vector<Attempts> outside{attemptsOf(runProgram({hostProgram("system_calls")}, ordinaryUser()).output)};
  if (::geteuid() == 0) {
    outside.push_back(attemptsOf(runProgram({hostProgram("system_calls")}).output));
  } else {
    WARN("not root: nothing shows here that the filter and not the want of rights refuses what only root may");
  }
  std::set<std::string> unproven;
  for (const auto& [name, outcome] : outside.front()) {
    CAPTURE(name, outcome);
    if (name.find("stays-") == std::string::npos &&
        std::all_of(outside.begin(), outside.end(),
                    [&, key = name](const Attempts& attempts) { return attempts.at(key) == expected(key); })) {
      unproven.insert(name);
    }
  }
  // Kernels without x32, and older ones, have no such calls.
  const std::set<std::string> mayBeMissing{"x32-getpid",     "x32-keyctl", "memfd_secret",  "statmount",
                                           "i386-statmount", "listmount",  "open_tree_attr"};
  const std::set<std::string> needRoot{"acct", "pivot_root", "reboot", "swapoff", "syslog"};
  for (const std::string& name : unproven) {
    CAPTURE(name);
    CHECK((mayBeMissing.count(name) == 1 || (::geteuid() != 0 && needRoot.count(name) == 1)));
  }
}

TEST_CASE("a guest that has its pid 1 run its code has not got rid of the filter") {
  const Footing footing = GENERATE(from_range(footings()));
  CAPTURE(footing);
  Sidecar sidecar(optionsFor(footing));
  Session session(sidecar);
  CHECK(session.sh("grep -h Seccomp: /proc/self/status /proc/1/status").out == "Seccomp:\t2\nSeccomp:\t2\n");
  Json params = session.commandParams({session.install("pid1_takeover"), "m" + uniqueDigits()});
  params["stream"] = true;
  sidecar.call("session.spawn", params);
  std::string said = sidecar.outputBytes();
  REQUIRE(said.starts_with("takeover="));
  if (!said.starts_with("takeover=ok")) {
    WARN("a guest cannot write its pid 1's memory here (" << said << "): its filter was looked at, and not attacked");
    return;
  }
  while (said.find("keyctl-of-pid1=") == std::string::npos) {
    said += sidecar.outputBytes();
  }
  CHECK(said == "takeover=ok\nkeyctl-of-pid1=ENOSYS\n");
}

}  // namespace
}  // namespace stitchkit::testing
