// Makes `argv[1]` levels of directories with names of `argv[2]` bytes, all the letter `argv[3]`, in the working
// directory, and a file named `file` in each of them.
#define _GNU_SOURCE
#include "report.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char** argv) {
  char name[256] = "";
  if (argc != 4 || (size_t)atol(argv[2]) >= sizeof name) {
    return 2;
  }
  memset(name, argv[3][0], (size_t)atol(argv[2]));
  for (long level = 0; level < atol(argv[1]); ++level) {
    const int made = mkdir(name, 0755) == 0 && chdir(name) == 0 ? open("file", O_WRONLY | O_CREAT, 0644) : -1;
    if (made < 0 || write(made, "deep\n", 5) != 5) {
      report("level", -1);
      return 1;
    }
    close(made);
  }
  report("made", 0);
  return 0;
}
