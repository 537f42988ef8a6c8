// Leaves descendants behind that are in a session and group of their own, ignore every signal they can, and hold the
// standard streams open; then exits with `argv[1]`. `argv[2]` is a marker for the command line.
#define _GNU_SOURCE
#include "report.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

// The process between is gone on return, so that whoever counts meets only those that stay.
static void leave(void) {
  const pid_t between = fork();
  if (between == 0) {
    setsid();
    if (fork() == 0) {
      for (int number = 1; number < NSIG; ++number) {
        signal(number, SIG_IGN);
      }
      for (;;) {
        pause();
      }
    }
    _exit(0);
  }
  waitpid(between, NULL, 0);
}

int main(int argc, char** argv) {
  for (int i = 0; i < 3; ++i) {
    leave();
  }
  printf("left\n");
  fflush(stdout);
  return argc > 1 ? atoi(argv[1]) : 0;
}
