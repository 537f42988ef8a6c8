// Tries to take over, look into or kill a process: pid 1 of the sandbox, or the one named by the argument.
#define _GNU_SOURCE
#include "report.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static long openProc(pid_t victim, const char* name, int flags) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", victim, name);
  return open(path, flags);
}

int main(int argc, char** argv) {
  const pid_t victim = argc > 1 ? atoi(argv[1]) : 1;
  report("open-mem", openProc(victim, "mem", O_RDWR));
  report("open-fd", openProc(victim, "fd", O_RDONLY | O_DIRECTORY));
  report("open-root", openProc(victim, "root/", O_RDONLY | O_DIRECTORY));
  char byte = 0;
  struct iovec local = {&byte, 1};
  struct iovec remote = {(void*)0x400000, 1};
  const long vmRead = process_vm_readv(victim, &local, 1, &remote, 1, 0);
  // EFAULT means that it was allowed to look.
  report("vm-read", vmRead < 0 && errno != EFAULT ? -1 : 0);
  const long handle = syscall(SYS_pidfd_open, victim, 0);
  report("pidfd-getfd", handle < 0 ? -1 : syscall(SYS_pidfd_getfd, handle, 0, 0));
  const long seized = ptrace(PTRACE_SEIZE, victim, 0, 0);
  report("ptrace", seized);
  if (seized >= 0) {
    ptrace(PTRACE_DETACH, victim, 0, 0);
  }
  report("kill", kill(victim, SIGKILL));
  // Signals to a namespace's init from inside are dropped without an error: still being here is the answer.
  usleep(50000);
  report("alive-after-kill", 0);
  return 0;
}
