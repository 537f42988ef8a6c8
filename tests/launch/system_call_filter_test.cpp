// The filter's program, run by an interpreter: every number and argument, also for processors that this machine is not.
// What it does to guests is in attacks/system_calls_test.cpp.
#include "backend/launch/system_call_filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

using namespace stitchkit;

namespace {

constexpr std::uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr int kFirstUnknown = 457;
constexpr std::uint64_t kUpperHalf = std::uint64_t{0xffffffff} << 32;

std::uint32_t refusal(int error) {
  return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error);
}

using CallArguments = std::vector<std::uint64_t>;

// As the kernel runs it.
class FilterProgram {
 public:
  explicit FilterProgram(std::span<const std::uint32_t> architectures) {
    const Result<std::string> bytes = makeSystemCallFilter(architectures);
    REQUIRE(bytes.has_value());
    REQUIRE(bytes->size() % sizeof(sock_filter) == 0);
    instructions_.resize(bytes->size() / sizeof(sock_filter));
    std::memcpy(instructions_.data(), bytes->data(), bytes->size());
  }

  [[nodiscard]] std::size_t size() const { return instructions_.size(); }

  // Throws for an instruction that the filter has no use for, and past the end.
  [[nodiscard]] std::uint32_t verdict(std::uint32_t architecture, int number,
                                      const CallArguments& arguments = {}) const {
    seccomp_data data{number, architecture, 0, {}};
    std::copy(arguments.begin(), arguments.end(), data.args);
    std::uint32_t value = 0;
    for (std::size_t at = 0; at < instructions_.size(); ++at) {
      const sock_filter& now = instructions_[at];
      if (now.code == (BPF_RET | BPF_K)) {
        return now.k;
      }
      if (now.code == (BPF_LD | BPF_W | BPF_ABS)) {
        std::memcpy(&value, reinterpret_cast<const char*>(&data) + now.k, sizeof value);
      } else if (now.code == (BPF_ALU | BPF_AND | BPF_K)) {
        value &= now.k;
      } else {
        at += jump(now, value);
      }
    }
    throw std::runtime_error("past the end");
  }

 private:
  static std::size_t jump(const sock_filter& now, std::uint32_t value) {
    switch (now.code) {
      case BPF_JMP | BPF_JA:
        return now.k;
      case BPF_JMP | BPF_JEQ | BPF_K:
        return value == now.k ? now.jt : now.jf;
      case BPF_JMP | BPF_JGE | BPF_K:
        return value >= now.k ? now.jt : now.jf;
      case BPF_JMP | BPF_JGT | BPF_K:
        return value > now.k ? now.jt : now.jf;
      default:
        throw std::runtime_error("an instruction that the filter should not have");
    }
  }

  std::vector<sock_filter> instructions_;
};

// Both interfaces of each kind of processor.
struct FilterView {
  const FilterProgram& program;
  std::uint32_t architecture;

  // libseccomp calls i386's own socket calls by a number of socketcall's.
  [[nodiscard]] int number(const std::string& call) const {
    if (architecture == AUDIT_ARCH_I386 && (call == "socket" || call == "socketpair")) {
      return call == "socket" ? 359 : 360;
    }
    return ::seccomp_syscall_resolve_name_arch(architecture, call.c_str());
  }
  [[nodiscard]] std::uint32_t verdict(const char* call, const CallArguments& arguments = {}) const {
    return program.verdict(architecture, number(call), arguments);
  }
};

std::vector<FilterView> filterViews() {
  static const FilterProgram x86(x86Architectures());
  static const FilterProgram arm(armArchitectures());
  return {{x86, AUDIT_ARCH_X86_64}, {x86, AUDIT_ARCH_I386}, {arm, AUDIT_ARCH_AARCH64}, {arm, AUDIT_ARCH_ARM}};
}

const std::map<int, std::vector<const char*>> kRefused = {
    {ENOSYS, {"clone3",          "add_key",        "request_key",       "keyctl",
              "io_uring_setup",  "io_uring_enter", "io_uring_register", "socketcall",
              "userfaultfd",     "memfd_secret",   "lookup_dcookie",    "nfsservctl",
              "uselib",          "vm86",           "vm86old",           "create_module",
              "get_kernel_syms", "query_module",   "_sysctl",           "open_tree",
              "move_mount",      "fsopen",         "fsconfig",          "fsmount",
              "fspick",          "mount_setattr"}},
    {EPERM,
     {"ptrace",
      "process_vm_readv",
      "process_vm_writev",
      "kcmp",
      "pidfd_getfd",
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
      "reboot",
      "iopl",
      "ioperm",
      "settimeofday",
      "stime",
      "clock_settime",
      "clock_settime64"}},
    {EOPNOTSUPP, {"name_to_handle_at"}}};

// Zeros are what these refuse: a family of 0.
const std::set<std::string> kByArgument = {"socket", "socketpair"};

}  // namespace

TEST_CASE("each number below the newest known call is refused by name or allowed, on every architecture", "[filter]") {
  for (const FilterView& view : filterViews()) {
    std::map<int, std::uint32_t> expected;
    for (const auto& [error, calls] : kRefused) {
      for (const char* call : calls) {
        if (view.number(call) >= 0) {
          expected[view.number(call)] = refusal(error);
        }
      }
    }
    REQUIRE(expected.size() > 40);
    for (const std::string& call : kByArgument) {
      REQUIRE(view.number(call) > 0);
      expected[view.number(call)] = refusal(EAFNOSUPPORT);
    }
    for (int number = 0; number < kFirstUnknown; ++number) {
      const auto found = expected.find(number);
      const std::uint32_t verdict = view.program.verdict(view.architecture, number);
      if (verdict != (found == expected.end() ? kAllow : found->second)) {
        CAPTURE(view.architecture, number);
        CHECK(verdict == (found == expected.end() ? kAllow : found->second));
      }
    }
  }
}

TEST_CASE("calls newer than the filter are not there, and neither is x32", "[filter]") {
  for (const FilterView& view : filterViews()) {
    CAPTURE(view.architecture);
    for (const int number : {kFirstUnknown, 458, 467, 470, 512, 521, 547, 1000, 0xeffff}) {
      CHECK(view.program.verdict(view.architecture, number) == refusal(ENOSYS));
    }
  }
  const FilterView x86 = filterViews()[0];
  for (int number = 0; number < 600; ++number) {
    if (x86.program.verdict(x86.architecture, 0x40000000 | number, {AF_UNIX}) != refusal(ENOSYS)) {
      FAIL("x32 call " << number);
    }
  }
  CHECK(filterViews()[3].verdict("cacheflush") == kAllow);  // ARM's own have numbers of their own
  CHECK(filterViews()[3].verdict("set_tls") == kAllow);
}

TEST_CASE("four families of sockets and one protocol of netlink; nothing gets by in the upper half", "[filter]") {
  std::vector<std::uint64_t> families{0xffffffff, 0x80000001, 0x10001};
  for (std::uint64_t family = 0; family < 300; ++family) {
    families.push_back(family);
  }
  const std::set<std::uint64_t> known{AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
  for (const FilterView& view : filterViews()) {
    for (const char* call : {"socket", "socketpair"}) {
      for (const std::uint64_t family : families) {
        CAPTURE(view.architecture, call, family);
        const std::uint32_t expected = known.count(family) == 1 ? kAllow : refusal(EAFNOSUPPORT);
        CHECK(view.verdict(call, {family, SOCK_DGRAM, 0}) == expected);
        if (expected != kAllow) {
          CHECK(view.verdict(call, {kUpperHalf | family, SOCK_DGRAM, 0}) == expected);
          CHECK(view.verdict(call, {(std::uint64_t{AF_UNIX} << 32) | family, SOCK_DGRAM, 0}) == expected);
        }
      }
      for (const std::uint64_t protocol : {1ULL, 4ULL, 9ULL, 15ULL, 16ULL, 0x80000000ULL}) {
        CAPTURE(view.architecture, call, protocol);
        CHECK(view.verdict(call, {AF_NETLINK, SOCK_RAW, protocol}) == refusal(EPROTONOSUPPORT));
        CHECK(view.verdict(call, {AF_NETLINK, SOCK_RAW, kUpperHalf | protocol}) == refusal(EPROTONOSUPPORT));
        CHECK(view.verdict(call, {kUpperHalf | AF_NETLINK, SOCK_RAW, protocol}) != kAllow);
        CHECK(view.verdict(call, {AF_INET, SOCK_RAW, protocol}) == kAllow);
      }
    }
  }
}

TEST_CASE("no new namespace: clone with one of its flags, unshare with any", "[filter]") {
  const std::vector<std::uint64_t> flags{CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                         CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};
  const std::uint64_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                               CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  for (const FilterView& view : filterViews()) {
    CAPTURE(view.architecture);
    for (const std::uint64_t flag : flags) {
      for (const std::uint64_t more : {std::uint64_t{0}, thread, kUpperHalf, std::uint64_t{17}}) {
        CAPTURE(flag, more);
        CHECK(view.verdict("clone", {flag | more}) == refusal(EPERM));
        CHECK(view.verdict("unshare", {flag | more}) == refusal(EPERM));
      }
    }
    CHECK(view.verdict("unshare", {CLONE_NEWTIME}) == refusal(EPERM));
    CHECK(view.verdict("unshare", {CLONE_FS | CLONE_FILES}) == kAllow);
    for (const std::uint64_t fine : {std::uint64_t{17}, thread, std::uint64_t{CLONE_VM | CLONE_VFORK | 17}}) {
      CHECK(view.verdict("clone", {fine}) == kAllow);
    }
  }
}

TEST_CASE("no typing into terminals, as the kernel reads a request", "[filter]") {
  for (const FilterView& view : filterViews()) {
    CAPTURE(view.architecture);
    for (const std::uint64_t request : {TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD}) {
      CHECK(view.verdict("ioctl", {0, request}) == refusal(EPERM));
      CHECK(view.verdict("ioctl", {0, kUpperHalf | request}) == refusal(EPERM));
      CHECK(view.verdict("ioctl", {0, (std::uint64_t{1} << 32) | request}) == refusal(EPERM));
    }
    for (const std::uint64_t request : {TCGETS, TIOCGWINSZ, TIOCSCTTY, FIONREAD, TIOCSWINSZ}) {
      CHECK(view.verdict("ioctl", {0, request}) == kAllow);
    }
  }
}

TEST_CASE("each architecture's numbers are its own", "[filter]") {
  const auto all = filterViews();
  CHECK(all[0].program.verdict(AUDIT_ARCH_X86_64, 101) == refusal(EPERM));  // ptrace
  CHECK(all[0].program.verdict(AUDIT_ARCH_I386, 101) == refusal(EPERM));    // ioperm
  CHECK(all[0].program.verdict(AUDIT_ARCH_I386, 26) == refusal(EPERM));     // ptrace
  CHECK(all[0].program.verdict(AUDIT_ARCH_X86_64, 26) == kAllow);           // msync
  CHECK(all[0].program.verdict(AUDIT_ARCH_I386, 359, {AF_VSOCK}) == refusal(EAFNOSUPPORT));
  CHECK(all[0].program.verdict(AUDIT_ARCH_I386, 102, {1}) == refusal(ENOSYS));  // socketcall
  CHECK(all[0].program.verdict(AUDIT_ARCH_X86_64, 102) == kAllow);              // getuid
  CHECK(all[2].program.verdict(AUDIT_ARCH_AARCH64, 117) == refusal(EPERM));     // ptrace
  CHECK(all[2].program.verdict(AUDIT_ARCH_ARM, 117) == kAllow);                 // ipc
}

TEST_CASE("an architecture that the filter does not know has no calls", "[filter]") {
  for (const FilterView& view : filterViews()) {
    CHECK(view.program.verdict(AUDIT_ARCH_RISCV64, 198, {AF_UNIX}) == refusal(ENOSYS));
    CHECK(view.program.verdict(AUDIT_ARCH_ARMEB, 20) == refusal(ENOSYS));
  }
}
