/* Takes of one resource what it is told to, and says how much it got.
 *   processes N   forks up to N children that wait: processes=M
 *   memory N      touches N MiB: memory=ok
 *   cpu N         N seconds of processor time: cpu=ok */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int takeProcesses(long wanted) {
  pid_t* children = calloc((size_t)wanted + 1, sizeof *children);
  long made = 0;
  for (; children != NULL && made < wanted; ++made) {
    children[made] = fork();
    if (children[made] < 0) {
      break;
    }
    if (children[made] == 0) {
      for (;;) {
        pause();
      }
    }
  }
  printf("processes=%ld\nerror=%s\n", made, made < wanted ? strerrorname_np(errno) : "none");
  for (long i = 0; i < made; ++i) {
    kill(children[i], SIGKILL);
    waitpid(children[i], NULL, 0);
  }
  free(children);
  return made < wanted;
}

static int takeMemory(long mebibytes) {
  const size_t size = (size_t)mebibytes << 20;
  char* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    printf("memory=%s\n", strerrorname_np(errno));
    return 1;
  }
  memset(memory, 1, size);
  puts("memory=ok");
  return 0;
}

static int takeCpu(long seconds) {
  struct timespec used;
  do {
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  } while (used.tv_sec < seconds);
  puts("cpu=ok");
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    return 2;
  }
  const long amount = strtol(argv[2], NULL, 10);
  if (strcmp(argv[1], "processes") == 0) {
    return takeProcesses(amount);
  }
  return strcmp(argv[1], "memory") == 0 ? takeMemory(amount) : takeCpu(amount);
}
