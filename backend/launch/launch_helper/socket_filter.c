#include "socket_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined(__x86_64__) && !defined(__AARCH64EL__)
#error "The filter knows no system calls of this architecture: every guest would be killed"
#endif

/* Numbers of other architectures' calls are in no header that one compiler sees. */
enum {
  kNoCall = -1,
  kX32Bit = 0x40000000, /* in a number: a call of x32 on x86-64, and none elsewhere */
  kIoUringSetup = 425,  /* everywhere */
  kSocketcallI386 = 102,
  kSocketX86_64 = 41,
  kSocketpairX86_64 = 53,
  kSocketI386 = 359,
  kSocketpairI386 = 360,
  kSocketAarch64 = 198,
  kSocketpairAarch64 = 199,
  kSocketArm = 281,
  kSocketpairArm = 288,
  /* add_key; request_key and keyctl are the next two. */
  kAddKeyX86_64 = 248,
  kAddKeyI386 = 286,
  kAddKeyAarch64 = 217,
  kAddKeyArm = 309
};

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define JUMP(condition, value, yes, no) BPF_JUMP(BPF_JMP | (condition) | BPF_K, value, yes, no)
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, action)
#define REFUSE_IF(condition, value, error) JUMP(condition, value, 0, 1), RETURN(SECCOMP_RET_ERRNO | (error))
#define ALLOW_FAMILY(family) JUMP(BPF_JEQ, family, 0, 1), RETURN(SECCOMP_RET_ALLOW)

/* The calls of one architecture; others go on behind them. Of the first argument, 64 bits and little-endian, the lower
 * half is loaded: the kernel takes no more for the family. */
enum { kCallsLength = 26 };
#define CALLS(audit, socketcall, socket, socketpair, addKey)                                                          \
  JUMP(BPF_JEQ, audit, 0, kCallsLength), LOAD(nr), REFUSE_IF(BPF_JSET, kX32Bit, ENOSYS),                              \
      REFUSE_IF(BPF_JEQ, kIoUringSetup, ENOSYS), REFUSE_IF(BPF_JEQ, addKey, ENOSYS),                                  \
      REFUSE_IF(BPF_JEQ, (addKey) + 1, ENOSYS), REFUSE_IF(BPF_JEQ, (addKey) + 2, ENOSYS),                             \
      REFUSE_IF(BPF_JEQ, socketcall, ENOSYS), JUMP(BPF_JEQ, socket, 2, 0), JUMP(BPF_JEQ, socketpair, 1, 0),           \
      RETURN(SECCOMP_RET_ALLOW), LOAD(args[0]), ALLOW_FAMILY(AF_UNIX), ALLOW_FAMILY(AF_INET), ALLOW_FAMILY(AF_INET6), \
      ALLOW_FAMILY(AF_NETLINK), RETURN(SECCOMP_RET_ERRNO | EAFNOSUPPORT)

/* A process chooses its architecture call by call: i386 by int 0x80, x32 by the number. */
const struct sock_filter kSocketFilter[] = {
    LOAD(arch),
    CALLS(AUDIT_ARCH_X86_64, kNoCall, kSocketX86_64, kSocketpairX86_64, kAddKeyX86_64),
    CALLS(AUDIT_ARCH_I386, kSocketcallI386, kSocketI386, kSocketpairI386, kAddKeyI386),
    CALLS(AUDIT_ARCH_AARCH64, kNoCall, kSocketAarch64, kSocketpairAarch64, kAddKeyAarch64),
    CALLS(AUDIT_ARCH_ARM, kNoCall, kSocketArm, kSocketpairArm, kAddKeyArm),
    RETURN(SECCOMP_RET_KILL_PROCESS),
};

const size_t kSocketFilterLength = sizeof kSocketFilter / sizeof *kSocketFilter;

int installSocketFilter(void) {
  const struct sock_fprog program = {(unsigned short)kSocketFilterLength, (struct sock_filter*)kSocketFilter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return -1;
  }
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}
