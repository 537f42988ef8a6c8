// Makes pid 1 of the sandbox forget that it must die with its parent: writes code into its memory, where its wait for
// children ends, and gives it a child to end that wait with. Reports what becomes of it, and what pid 1 then hears when
// it makes a system call that guests do not have. Then sleeps. `argv[1]` is a marker for the command line.
#define _GNU_SOURCE
#include "report.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { kWait4 = 61, kPause = 34, kPatience = 15000 };  // milliseconds

static const unsigned char kCode[] = {
    0xb8, 0x9d, 0,    0,    0, 0xbf, 1,    0,    0,    0,    0x31, 0xf6, 0x0f, 0x05,  // prctl(PR_SET_PDEATHSIG, 0)
    0xb8, 0xfa, 0,    0,    0, 0xbf, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x05,              // keyctl(-1)
    0x89, 0xc7, 0xb8, 0x22, 0, 0,    0,    0x0f, 0x05, 0xeb, 0xf7};                   // for ever pause(what that gave)

// What pid 1 waits in, and where that returns to.
static int systemCallOfInit(unsigned long* first, unsigned long* returnsTo) {
  char text[256] = "";
  const int file = open("/proc/1/syscall", O_RDONLY | O_CLOEXEC);
  const ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
  close(file);
  const char* last = strrchr(text, ' ');
  if (size <= 0 || last == NULL) {
    return -1;
  }
  *first = strtoul(strchr(text, ' '), NULL, 16);
  *returnsTo = strtoul(last, NULL, 16);
  return atoi(text);
}

// A process without a parent is pid 1's.
static void endItsWait(void) {
  const pid_t parent = fork();
  if (parent == 0) {
    if (fork() == 0) {
      while (getppid() != 1) {
        usleep(1000);
      }
    }
    _exit(0);
  }
  waitpid(parent, NULL, 0);
}

static long takeOver(int* heard) {
  unsigned long first = 0, returnsTo = 0;
  if (systemCallOfInit(&first, &returnsTo) != kWait4) {
    return -1;
  }
  const int memory = open("/proc/1/mem", O_RDWR | O_CLOEXEC);
  if (memory < 0 || pwrite(memory, kCode, sizeof kCode, (off_t)returnsTo) != (ssize_t)sizeof kCode) {
    return -1;
  }
  close(memory);
  endItsWait();
  for (int i = 0; i < kPatience; ++i) {
    if (systemCallOfInit(&first, &returnsTo) == kPause) {
      *heard = -(int)first;
      return 0;
    }
    usleep(1000);
  }
  errno = ETIMEDOUT;
  return -1;
}
#else
static long takeOver(int* heard) {
  (void)heard;
  errno = ENOSYS;
  return -1;
}
#endif

int main(void) {
  int heard = 0;
  const long outcome = takeOver(&heard);
  report("takeover", outcome);
  if (outcome == 0) {
    errno = heard;
    report("keyctl-of-pid1", heard == 0 ? 0 : -1);
  }
  sleep(60);
  return 0;
}
