// Exchanges two names for ever, for each pair of them in turn. `argv[1]`: after so many rounds it says `rounds=N`. Then
// triples: the name that others use, the name of a link, and the link's target. A link that was replaced by something
// is planted again.
#define _GNU_SOURCE
#include "report.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void plant(const char* name, const char* target) {
  struct stat status;
  if (lstat(name, &status) != 0 || (!S_ISLNK(status.st_mode) && unlink(name) == 0)) {
    if (symlink(target, name) != 0) {
      report("plant", -1);
    }
  }
}

int main(int argc, char** argv) {
  const long most = argc > 1 ? atol(argv[1]) : 1;
  for (long round = 1;; ++round) {
    for (int i = 2; i + 2 < argc; i += 3) {
      // Before an odd round the second name is the link's.
      if (round % 2 == 1) {
        plant(argv[i + 1], argv[i + 2]);
      }
      if (renameat2(AT_FDCWD, argv[i], AT_FDCWD, argv[i + 1], RENAME_EXCHANGE) != 0) {
        report("exchange", -1);
        return 1;
      }
    }
    if (round == most) {
      printf("rounds=%ld\n", round);
      fflush(stdout);
    }
  }
}
