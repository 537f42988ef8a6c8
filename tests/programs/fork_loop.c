// Forks at most `argv[1]` children that sleep; says how many there were, then sleeps with them. `argv[2]` is a marker
// for the command line.
#define _GNU_SOURCE
#include "report.h"

#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const int most = argc > 1 ? atoi(argv[1]) : 100;
  int made = 0;
  while (made < most) {
    const pid_t child = fork();
    if (child < 0) {
      break;
    }
    if (child == 0) {
      pause();
      _exit(0);
    }
    ++made;
  }
  printf("forked=%d\n", made);
  fflush(stdout);
  pause();
  return 0;
}
