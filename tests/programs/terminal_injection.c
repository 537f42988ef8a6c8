// Tries to type into a terminal that it was not given: 'x' by TIOCSTI on each standard stream and on /dev/tty, with and
// without high bits in the request number, and by TIOCLINUX.
#define _GNU_SOURCE
#include "report.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void inject(const char* where, int terminal) {
  char name[64];
  char letter = 'x';
  snprintf(name, sizeof name, "tiocsti-%s", where);
  report(name, ioctl(terminal, TIOCSTI, &letter));
  // A filter that compares 64 bits lets this through, and the kernel looks at 32.
  snprintf(name, sizeof name, "tiocsti-high-%s", where);
  report(name, syscall(SYS_ioctl, terminal, TIOCSTI + (1UL << 32), &letter));
  char subcode = 2;  // TIOCL_SETSEL's neighbours: paste the selection is 3, set it 2
  snprintf(name, sizeof name, "tioclinux-%s", where);
  report(name, ioctl(terminal, TIOCLINUX, &subcode));
}

int main(void) {
  const char* streams[] = {"stdin", "stdout", "stderr"};
  for (int number = 0; number < 3; ++number) {
    char name[64];
    snprintf(name, sizeof name, "isatty-%s", streams[number]);
    report(name, isatty(number) ? 0 : -1);
    inject(streams[number], number);
  }
  int terminal = open("/dev/tty", O_RDWR | O_NOCTTY);
  report("open-tty", terminal);
  if (terminal >= 0) {
    inject("tty", terminal);
  }
  const pid_t child = fork();
  if (child == 0) {
    report("setsid", setsid());
    report("open-tty-after-setsid", open("/dev/tty", O_RDWR));
    _exit(0);
  }
  waitpid(child, NULL, 0);
  return 0;
}
