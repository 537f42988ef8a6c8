// Makes a tree of very many files below `argv[1]`: `argv[2]` directories of `argv[3]` files each, and one directory,
// `all`, of `argv[4]` with long names. All of them are links to few files with one line, since that is quicker than to
// make them.
#define _GNU_SOURCE
#include "report.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// Below what file systems allow.
enum { kMostLinks = 30000 };

static long check(const char* name, long outcome) {
  if (outcome < 0) {
    report(name, outcome);
    exit(1);
  }
  return outcome;
}

static void fill(const char* path, long files, size_t nameBytes) {
  check("mkdir", mkdir(path, 0755));
  const int directory = (int)check("open", open(path, O_RDONLY | O_DIRECTORY));
  char first[256] = "";
  for (long i = 0; i < files; ++i) {
    char name[256] = "";
    memset(name, 'x', nameBytes);
    name[snprintf(name, sizeof name, "f%07ld", i)] = nameBytes > 8 ? 'x' : 0;
    if (i % kMostLinks == 0) {
      const int file = (int)check("create", openat(directory, name, O_WRONLY | O_CREAT | O_EXCL, 0644));
      check("write", write(file, "hay\n", 4));
      close(file);
      memcpy(first, name, sizeof first);
    } else {
      check("link", linkat(directory, first, directory, name, 0));
    }
  }
  close(directory);
}

int main(int argc, char** argv) {
  if (argc != 5) {
    return 2;
  }
  char path[512];
  check("mkdir", mkdir(argv[1], 0755));
  for (long i = 0; i < atol(argv[2]); ++i) {
    snprintf(path, sizeof path, "%s/d%05ld", argv[1], i);
    fill(path, atol(argv[3]), 8);
  }
  snprintf(path, sizeof path, "%s/all", argv[1]);
  fill(path, atol(argv[4]), 200);
  report("made", 0);
  return 0;
}
