// Tries each way to a new user namespace.
#define _GNU_SOURCE
#include "report.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void tryInChild(const char* name, long (*attempt)(void)) {
  const pid_t child = fork();
  if (child == 0) {
    report(name, attempt());
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

static long unshareUser(void) {
  return unshare(CLONE_NEWUSER);
}

static long unshareUserAndMount(void) {
  return unshare(CLONE_NEWUSER | CLONE_NEWNS);
}

static long cloneUser(void) {
  const long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    _exit(0);
  }
  return child;
}

static long clone3User(void) {
  struct clone_args arguments = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
  const long child = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (child == 0) {
    _exit(0);
  }
  return child;
}

// Into the namespace of pid 1, which may hold more capabilities.
static long joinOfPid1(void) {
  const int space = open("/proc/1/ns/user", O_RDONLY);
  return space < 0 ? -1 : setns(space, CLONE_NEWUSER);
}

int main(void) {
  tryInChild("unshare", unshareUser);
  tryInChild("unshare-mount", unshareUserAndMount);
  tryInChild("clone", cloneUser);
  tryInChild("clone3", clone3User);
  tryInChild("setns-pid1", joinOfPid1);
  return 0;
}
