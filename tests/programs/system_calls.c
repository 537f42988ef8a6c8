// Tries system calls that a sandbox has no use for, each in a process of its own, with arguments that change nothing
// even where nothing protects and root asks: what the kernel itself would say to them tells whether it was asked.
// `NAME` by the system call of this processor, `i386-NAME` by the one of 32-bit programs (int 0x80), `x32-NAME` by the
// one of x32; `stays-NAME` is what programs need.
#define _GNU_SOURCE
#include "report.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/landlock.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOWHERE "/nonexistent/stitchkit"

static long tryTrace(void) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
  }
  const long outcome = ptrace(PTRACE_SEIZE, child, 0, 0);
  const int failure = errno;
  kill(child, SIGKILL);
  errno = failure;
  return outcome;
}

static long tryTraceMe(void) {
  return ptrace(PTRACE_TRACEME, 0, 0, 0);
}

static long copyMemory(long number) {
  char from[4] = "one", to[4] = "two";
  const struct iovec local = {to, sizeof to}, remote = {from, sizeof from};
  return syscall(number, getpid(), &local, 1UL, &remote, 1UL, 0UL);
}

static long tryReadMemory(void) {
  return copyMemory(SYS_process_vm_readv);
}

static long tryWriteMemory(void) {
  return copyMemory(SYS_process_vm_writev);
}

static long tryCompare(void) {
  return syscall(SYS_kcmp, getpid(), getpid(), (long)KCMP_FILE, 0L, 0L);
}

static long tryTakeDescriptor(void) {
  return syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, getpid(), 0L), 0L, 0L);
}

static long trySetTime(void) {
  const struct timeval invalid = {0, -1};
  return syscall(SYS_settimeofday, &invalid, NULL);
}

static long cloneInto(unsigned long flags) {
  const long child = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
  if (child == 0) {
    _exit(0);
  }
  return child;
}

static long tryCloneUser(void) {
  return cloneInto(CLONE_NEWUSER);
}

static long tryCloneUserUpperHalf(void) {
  return cloneInto(CLONE_NEWUSER | 0x8000000000000000UL);
}

static long tryOpenPid(void) {
  return syscall(SYS_pidfd_open, getpid(), 0L);
}

static long tryFork(void) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  return child;
}

static const struct {
  const char* name;
  long (*try)(void);
} kFunctions[] = {{"ptrace", tryTrace},
                  {"ptrace-me", tryTraceMe},
                  {"process_vm_readv", tryReadMemory},
                  {"process_vm_writev", tryWriteMemory},
                  {"kcmp", tryCompare},
                  {"pidfd_getfd", tryTakeDescriptor},
                  {"settimeofday", trySetTime},
                  {"clone-user", tryCloneUser},
                  {"clone-user-upper-half", tryCloneUserUpperHalf},
                  {"stays-pidfd_open", tryOpenPid},
                  {"stays-fork", tryFork}};

struct Call {
  const char* name;
  long number;
  long arguments[6];
};

#define UPPER(value) ((long)(value) | 1L << 32)

static const struct Call kCalls[] = {
    {"clone3", SYS_clone3, {0, 0}},
    {"add_key", SYS_add_key, {0, 0, 0, 0, 0}},
    {"request_key", SYS_request_key, {0, 0, 0, 0}},
    {"keyctl", SYS_keyctl, {-1}},
    {"io_uring_setup", SYS_io_uring_setup, {0, 0}},
    {"io_uring_enter", SYS_io_uring_enter, {-1}},
    {"io_uring_register", SYS_io_uring_register, {-1}},
    {"userfaultfd", SYS_userfaultfd, {0x7fffffff}},
    {"memfd_secret", SYS_memfd_secret, {0x7fffffff}},
    {"open_tree", SYS_open_tree, {-1, 0, -1}},
    {"move_mount", SYS_move_mount, {-1, 0, -1, 0, -1}},
    {"fsopen", SYS_fsopen, {0, -1}},
    {"fsconfig", SYS_fsconfig, {-1, -1, 0, 0, 0}},
    {"fsmount", SYS_fsmount, {-1, -1, -1}},
    {"fspick", SYS_fspick, {-1, 0, -1}},
    {"mount_setattr", SYS_mount_setattr, {-1, 0, -1, 0, 0}},
    {"statmount", 457, {0, 0, 0, -1}},
    {"listmount", 458, {0, 0, 0, -1}},
    {"open_tree_attr", 467, {-1, 0, -1, 0, 0}},
    {"bpf", SYS_bpf, {0x7fff, 0, 0}},
    {"perf_event_open", SYS_perf_event_open, {0, 0, 0, -1, -1}},
    {"syslog", SYS_syslog, {10, 0, 0}},
    {"init_module", SYS_init_module, {0, 0, 0}},
    {"finit_module", SYS_finit_module, {-1, 0, 0}},
    {"delete_module", SYS_delete_module, {(long)"stitchkit_none", O_NONBLOCK}},
    {"kexec_load", SYS_kexec_load, {0, 1 << 20, 0, 0xfff0}},
    {"kexec_file_load", SYS_kexec_file_load, {-1, -1, 0, 0, 0xfff0}},
    {"mount", SYS_mount, {0, 0, 0, 0, 0}},
    {"umount2", SYS_umount2, {0, 0x7fffffff}},
    {"pivot_root", SYS_pivot_root, {0, 0}},
    {"chroot", SYS_chroot, {0}},
    {"swapon", SYS_swapon, {0, -1}},
    {"swapoff", SYS_swapoff, {0}},
    {"quotactl", SYS_quotactl, {-1, 0, 0, 0}},
    {"quotactl_fd", SYS_quotactl_fd, {-1, -1, 0, 0}},
    {"acct", SYS_acct, {(long)NOWHERE}},
    {"fanotify_init", SYS_fanotify_init, {0x200 /* FAN_REPORT_FID */, O_RDONLY}},
    {"open_by_handle_at", SYS_open_by_handle_at, {-1, 0, 0}},
    {"name_to_handle_at", SYS_name_to_handle_at, {AT_FDCWD, (long)"/", 0, 0, 0}},
    {"setns", SYS_setns, {-1, 0}},
    {"unshare-user", SYS_unshare, {CLONE_NEWUSER}},
    {"unshare-user-upper-half", SYS_unshare, {UPPER(CLONE_NEWUSER)}},
    {"unshare-user-and-files", SYS_unshare, {CLONE_NEWUSER | CLONE_FILES}},
    {"reboot", SYS_reboot, {0, 0, 0, 0}},
    {"clock_settime", SYS_clock_settime, {0x7fff, 0}},
    {"ioctl-sti", SYS_ioctl, {-1, TIOCSTI, 0}},
    {"ioctl-sti-upper-half", SYS_ioctl, {-1, UPPER(TIOCSTI), 0}},
    {"ioctl-linux", SYS_ioctl, {-1, TIOCLINUX, 0}},
    {"ioctl-linux-upper-half", SYS_ioctl, {-1, UPPER(TIOCLINUX), 0}},
    {"ioctl-setd", SYS_ioctl, {-1, TIOCSETD, 0}},
    {"socket-packet", SYS_socket, {AF_PACKET, SOCK_RAW, 0}},
    {"socket-packet-upper-half", SYS_socket, {UPPER(AF_PACKET), SOCK_RAW, 0}},
    {"socketpair-packet", SYS_socketpair, {AF_PACKET, SOCK_RAW, 0, 0}},
    {"netlink-diag", SYS_socket, {AF_NETLINK, SOCK_RAW, 4}},
    {"netlink-diag-upper-half", SYS_socket, {AF_NETLINK, SOCK_RAW, UPPER(4)}},
    {"netlink-uevent", SYS_socket, {AF_NETLINK, SOCK_RAW, 15}},
#ifdef __x86_64__
    {"iopl", SYS_iopl, {4}},
    {"ioperm", SYS_ioperm, {-1, 1, 1}},
    {"x32-getpid", 0x40000000 + SYS_getpid, {0}},
    {"x32-keyctl", 0x40000000 + SYS_keyctl, {-1}},
#endif
    {"stays-landlock", SYS_landlock_create_ruleset, {0, 0, LANDLOCK_CREATE_RULESET_VERSION}},
    {"stays-memfd", SYS_memfd_create, {(long)"stitchkit", 0}},
    {"stays-unshare-files", SYS_unshare, {CLONE_FILES | CLONE_FS}},
    {"stays-personality", SYS_personality, {-1}},
    {"stays-no-randomize", SYS_personality, {0x0040000}},
    {"stays-netlink-route", SYS_socket, {AF_NETLINK, SOCK_RAW, 0}},
};

#ifdef __x86_64__
static const struct Call kI386Calls[] = {
    {"i386-keyctl", 288, {-1}},
    {"i386-add_key", 286, {0, 0, 0, 0, 0}},
    {"i386-ptrace", 26, {PTRACE_PEEKDATA, 0x7ffffff, 0, 0}},
    {"i386-process_vm_readv", 347, {1, 0, 0, 0, 0}},
    {"i386-unshare-user", 310, {CLONE_NEWUSER}},
    {"i386-setns", 346, {-1, 0}},
    {"i386-clone3", 435, {0, 0}},
    {"i386-mount", 21, {0, 0, 0, 0, 0}},
    {"i386-umount", 22, {0}},
    {"i386-umount2", 52, {0, 0x7fffffff}},
    {"i386-chroot", 61, {0}},
    {"i386-open_tree", 428, {-1, 0, -1}},
    {"i386-statmount", 457, {0, 0, 0, -1}},
    {"i386-bpf", 357, {0x7fff, 0, 0}},
    {"i386-perf_event_open", 336, {0, 0, 0, -1, -1}},
    {"i386-userfaultfd", 374, {0x7fffffff}},
    {"i386-io_uring_setup", 425, {0, 0}},
    {"i386-clock_settime64", 404, {0x7fff, 0}},
    {"i386-socket-packet", 359, {AF_PACKET, SOCK_RAW, 0}},
    {"i386-netlink-diag", 359, {AF_NETLINK, SOCK_RAW, 4}},
    {"i386-socketcall", 102, {1, 0}},
    {"i386-ioctl-sti", 54, {-1, TIOCSTI, 0}},
    {"i386-stays-getpid", 20, {0}},
};

static long int80(const struct Call* call) {
  long outcome = call->number;
  __asm__ volatile("int $0x80"
                   : "+a"(outcome)
                   : "b"(call->arguments[0]), "c"(call->arguments[1]), "d"(call->arguments[2]), "S"(call->arguments[3]),
                     "D"(call->arguments[4])
                   : "memory", "r8", "r9", "r10", "r11");
  outcome = (int)outcome;
  errno = outcome < 0 ? (int)-outcome : 0;
  return outcome < 0 ? -1 : outcome;
}
#endif

static long systemCall(const struct Call* call) {
  const long* with = call->arguments;
  return syscall(call->number, with[0], with[1], with[2], with[3], with[4], with[5]);
}

static void inChild(const char* name, long (*function)(void), long (*caller)(const struct Call*),
                    const struct Call* call) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    errno = 0;
    report(name, function != NULL ? function() : caller(call));
    _exit(0);
  }
  if (waitpid(child, &status, 0) == child && WIFSIGNALED(status)) {
    printf("%s=SIG%s\n", name, sigabbrev_np(WTERMSIG(status)));
    fflush(stdout);
  }
}

int main(void) {
  for (size_t i = 0; i < sizeof kFunctions / sizeof *kFunctions; ++i) {
    inChild(kFunctions[i].name, kFunctions[i].try, NULL, NULL);
  }
  for (size_t i = 0; i < sizeof kCalls / sizeof *kCalls; ++i) {
    inChild(kCalls[i].name, NULL, systemCall, &kCalls[i]);
  }
#ifdef __x86_64__
  for (size_t i = 0; i < sizeof kI386Calls / sizeof *kI386Calls; ++i) {
    inChild(kI386Calls[i].name, NULL, int80, &kI386Calls[i]);
  }
#endif
  return 0;
}
