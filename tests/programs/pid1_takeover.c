// Makes pid 1 of the sandbox forget that it must die with its parent: stops it, has it run prctl(PR_SET_PDEATHSIG, 0),
// and lets it go on. Then sleeps. `argv[1]` is a marker for the command line.
#define _GNU_SOURCE
#include "report.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
static const long kSyscallBytes = 2;  // of the instruction that pid 1 waits in

// Runs one system call in the stopped `victim` and puts everything back as it was.
static long inject(pid_t victim, long number, long first, long second) {
  struct user_regs_struct saved;
  if (ptrace(PTRACE_GETREGS, victim, 0, &saved) < 0) {
    return -1;
  }
  struct user_regs_struct changed = saved;
  changed.rip = saved.rip - kSyscallBytes;
  changed.rax = (unsigned long)number;
  changed.rdi = (unsigned long)first;
  changed.rsi = (unsigned long)second;
  changed.orig_rax = (unsigned long)-1;  // nothing to restart
  int status = 0;
  if (ptrace(PTRACE_SETREGS, victim, 0, &changed) < 0 || ptrace(PTRACE_SINGLESTEP, victim, 0, 0) < 0 ||
      waitpid(victim, &status, __WALL) < 0 || ptrace(PTRACE_GETREGS, victim, 0, &changed) < 0) {
    return -1;
  }
  ptrace(PTRACE_SETREGS, victim, 0, &saved);
  errno = (int)-(long)changed.rax;
  return (long)changed.rax < 0 ? -1 : 0;
}

static long takeOver(pid_t victim) {
  int status = 0;
  if (ptrace(PTRACE_SEIZE, victim, 0, 0) < 0 || ptrace(PTRACE_INTERRUPT, victim, 0, 0) < 0 ||
      waitpid(victim, &status, __WALL) < 0) {
    return -1;
  }
  const long outcome = inject(victim, SYS_prctl, PR_SET_PDEATHSIG, 0);
  ptrace(PTRACE_DETACH, victim, 0, 0);
  return outcome;
}
#else
static long takeOver(pid_t victim) {
  (void)victim;
  errno = ENOSYS;
  return -1;
}
#endif

int main(void) {
  report("takeover", takeOver(1));
  sleep(60);
  return 0;
}
