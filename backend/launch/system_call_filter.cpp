#include "backend/launch/system_call_filter.h"

#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "backend/launch/descriptors.h"
#include "backend/launch/launch_helper/launch_protocol.h"

namespace stitchkit {
namespace {

// What is not named here is allowed. A list of what is allowed would have to know every call that some compiler,
// runtime or package manager makes on every machine, and a guest that breaks in the middle of its work is the price of
// each that was forgotten. The kernel checks rights for all of these calls itself; the filter is there for its
// faults, and for what namespaces do not divide. Calls that are newer than the list are refused (kFirstUnknownCall).
// personality is not on the list: what it sets is the caller's own, and sanitizers and Lisps set it.
//
// The errno is one that the call's users expect: ENOSYS where they have a second way for kernels without the call,
// EPERM where they know of rights, others where the kernel itself says so.

constexpr int kNotThere[] = {
    // Namespaces, in memory that no filter can read. The C library goes on with clone.
    SCMP_SYS(clone3),
    // Keys belong to the host's user, whatever the namespace: by them guests of all sessions could reach each other.
    SCMP_SYS(add_key), SCMP_SYS(request_key), SCMP_SYS(keyctl),
    // Calls within calls, which no filter sees.
    SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register), SCMP_SYS(socketcall),
    // What faults of the kernel are made usable with, and what nothing in a sandbox needs.
    SCMP_SYS(userfaultfd), SCMP_SYS(memfd_secret), SCMP_SYS(lookup_dcookie), SCMP_SYS(nfsservctl), SCMP_SYS(uselib),
    SCMP_SYS(vm86), SCMP_SYS(vm86old), SCMP_SYS(create_module), SCMP_SYS(get_kernel_syms), SCMP_SYS(query_module),
    SCMP_SYS(_sysctl),
    // The newer calls for mounts: their users go on with mount.
    SCMP_SYS(open_tree), SCMP_SYS(move_mount), SCMP_SYS(fsopen), SCMP_SYS(fsconfig), SCMP_SYS(fsmount),
    SCMP_SYS(fspick), SCMP_SYS(mount_setattr)};

constexpr int kNotAllowed[] = {
    // Other processes' memory, registers and descriptors.
    SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(kcmp), SCMP_SYS(pidfd_getfd),
    // Programs in the kernel, and looking into it.
    SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(syslog), SCMP_SYS(init_module), SCMP_SYS(finit_module),
    SCMP_SYS(delete_module), SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load),
    // File systems as a whole.
    SCMP_SYS(mount), SCMP_SYS(umount), SCMP_SYS(umount2), SCMP_SYS(pivot_root), SCMP_SYS(chroot), SCMP_SYS(swapon),
    SCMP_SYS(swapoff), SCMP_SYS(quotactl), SCMP_SYS(quotactl_fd), SCMP_SYS(acct), SCMP_SYS(fanotify_init),
    SCMP_SYS(open_by_handle_at),
    // The machine. adjtimex and clock_adjtime stay: they read the clock's state, too, and it takes rights to set it.
    SCMP_SYS(setns), SCMP_SYS(reboot), SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(settimeofday), SCMP_SYS(stime),
    SCMP_SYS(clock_settime), SCMP_SYS(clock_settime64)};

// CLONE_NEWTIME is for unshare alone: to clone its bit is a part of the signal's number.
constexpr std::uint32_t kNamespaces[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                         CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};

// Typing into a terminal, and line disciplines, each a driver of its own.
constexpr std::uint32_t kTerminalRequests[] = {TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD};

// A network namespace does not hold every family: by AF_VSOCK a virtual machine speaks to the one that runs it.
constexpr std::uint64_t kFamilies[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
constexpr std::uint64_t kNetlinkProtocols[] = {NETLINK_ROUTE};

// From 424 on the numbers are the same on all architectures, so that this one bounds them all: the first that
// libseccomp 2.5.4 does not know. The kernel's own for 32-bit ARM begin at kFirstArmCall.
constexpr std::uint32_t kFirstUnknownCall = 457;
constexpr std::uint32_t kFirstArmCall = 0x0f0000;

// Goes before the filter, since libseccomp 2.5.4 takes no number without a name and compares none by size.
constexpr std::array kRefuseUnknownCalls = {sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                            sock_filter BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kFirstUnknownCall, 0, 2),
                                            sock_filter BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kFirstArmCall, 1, 0),
                                            sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS)};

// Of an argument the lower half, as the kernel takes it.
scmp_arg_cmp masked(unsigned argument, std::uint32_t mask, std::uint32_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, mask, value};
}

// The first failure is kept, and nothing is done after it.
class Rules {
 public:
  explicit Rules(std::span<const std::uint32_t> architectures)
      : context_(::seccomp_init(SCMP_ACT_ALLOW), ::seccomp_release) {
    failure_ = context_ == nullptr ? -ENOMEM : 0;
    // x32, which is not among the architectures, is one of them.
    note([&] { return ::seccomp_attr_set(context_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)); });
    note([&] { return ::seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2); });
    note([&] { return ::seccomp_arch_remove(context_.get(), SCMP_ARCH_NATIVE); });
    for (const std::uint32_t architecture : architectures) {
      note([&] { return ::seccomp_arch_add(context_.get(), architecture); });
    }
  }

  void refuse(int error, int call, const std::vector<scmp_arg_cmp>& where = {}) {
    note([&] {
      return ::seccomp_rule_add_array(context_.get(), SCMP_ACT_ERRNO(error), call, static_cast<unsigned>(where.size()),
                                      where.data());
    });
  }

  // All values of an argument but `allowed`, which ascend. A register's upper half counts here: no program leaves
  // anything in it, and what the kernel would take the lower half of is refused, never let through.
  void refuseOthers(int error, int call, unsigned argument, std::span<const std::uint64_t> allowed,
                    const std::vector<scmp_arg_cmp>& where = {}) {
    const auto refuseWhere = [&](scmp_compare comparison, std::uint64_t value) {
      std::vector<scmp_arg_cmp> all = where;
      all.push_back({argument, comparison, value, 0});
      refuse(error, call, all);
    };
    for (std::uint64_t value = 0; value < allowed.back(); ++value) {
      if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
        refuseWhere(SCMP_CMP_EQ, value);
      }
    }
    refuseWhere(SCMP_CMP_GT, allowed.back());
  }

  /// 0 or a negative errno.
  int exportTo(int file) {
    note([&] { return ::seccomp_export_bpf(context_.get(), file); });
    return failure_;
  }

 private:
  template <typename Call>
  void note(const Call& call) {
    failure_ = failure_ == 0 ? call() : failure_;
  }

  std::unique_ptr<void, void (*)(scmp_filter_ctx)> context_;
  int failure_ = 0;
};

void addRules(Rules& rules) {
  for (const int call : kNotThere) {
    rules.refuse(ENOSYS, call);
  }
  for (const int call : kNotAllowed) {
    rules.refuse(EPERM, call);
  }
  rules.refuse(EOPNOTSUPP, SCMP_SYS(name_to_handle_at));  // as file systems without handles say
  for (const std::uint32_t flag : kNamespaces) {
    rules.refuse(EPERM, SCMP_SYS(clone), {masked(0, flag, flag)});
    rules.refuse(EPERM, SCMP_SYS(unshare), {masked(0, flag, flag)});
  }
  rules.refuse(EPERM, SCMP_SYS(unshare), {masked(0, CLONE_NEWTIME, CLONE_NEWTIME)});
  for (const std::uint32_t request : kTerminalRequests) {
    rules.refuse(EPERM, SCMP_SYS(ioctl), {masked(1, 0xffffffffU, request)});
  }
  for (const int call : {SCMP_SYS(socket), SCMP_SYS(socketpair)}) {
    rules.refuseOthers(EAFNOSUPPORT, call, 0, kFamilies);
    rules.refuseOthers(EPROTONOSUPPORT, call, 2, kNetlinkProtocols, {{0, SCMP_CMP_EQ, AF_NETLINK, 0}});
  }
  rules.refuse(LAUNCH_FILTER_ANSWER, SCMP_SYS(prctl), {masked(0, 0xffffffffU, LAUNCH_FILTER_QUESTION)});
}

Error filterError(const std::string& detail) {
  return Error(ErrorKind::kUnavailable, "The filter of system calls could not be made").withPrivate(detail);
}

Result<std::string> contentOf(int file) {
  const off_t size = ::lseek(file, 0, SEEK_END);
  std::string bytes(static_cast<std::size_t>(size > 0 ? size : 0), '\0');
  if (size <= 0 || ::pread(file, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(size)) {
    return launchResourceError("read filter", errno);
  }
  return bytes;
}

}  // namespace

std::span<const std::uint32_t> x86Architectures() {
  static constexpr std::uint32_t kAll[] = {SCMP_ARCH_X86_64, SCMP_ARCH_X86};
  return kAll;
}

std::span<const std::uint32_t> armArchitectures() {
  static constexpr std::uint32_t kAll[] = {SCMP_ARCH_AARCH64, SCMP_ARCH_ARM};
  return kAll;
}

Result<std::string> makeSystemCallFilter(std::span<const std::uint32_t> architectures) {
  const UniqueFd file(::memfd_create("stitchkit", MFD_CLOEXEC));
  if (!file) {
    return launchResourceError("memfd_create", errno);
  }
  Rules rules(architectures);
  addRules(rules);
  if (const int failure = rules.exportTo(file.get()); failure != 0) {
    return filterError("libseccomp: " + errnoName(-failure));
  }
  Result<std::string> exported = contentOf(file.get());
  if (!exported) {
    return exported;
  }
  std::string program(reinterpret_cast<const char*>(kRefuseUnknownCalls.data()), sizeof kRefuseUnknownCalls);
  program += *exported;
  return program;
}

const Result<std::string>& systemCallFilter() {
#if defined(__x86_64__)
  static const Result<std::string> filter = makeSystemCallFilter(x86Architectures());
#elif defined(__AARCH64EL__)
  static const Result<std::string> filter = makeSystemCallFilter(armArchitectures());
#else
#error "Which architectures does this processor have, and is the order of its bytes the same?"
#endif
  return filter;
}

}  // namespace stitchkit
