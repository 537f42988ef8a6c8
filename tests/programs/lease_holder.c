// Takes a lease on the file `argv[1]` and holds it whoever waits for it: others' opening waits until the kernel's
// patience ends, 45 seconds unless set otherwise.
#define _GNU_SOURCE
#include "report.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

int main(int argc, char** argv) {
  signal(SIGIO, SIG_IGN);
  const int file = argc > 1 ? open(argv[1], O_RDWR) : -1;
  report("lease", file < 0 ? file : fcntl(file, F_SETLEASE, F_WRLCK));
  for (;;) {
    pause();
  }
}
