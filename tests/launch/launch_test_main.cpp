// Guests never run as the host's root, and neither do their tests: a root that starts them becomes nobody.
#include <grp.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "tests/support/catch_main.h"

namespace {

constexpr uid_t kNobody = 65534;

// Exec makes the process's own /proc entries belong to the new user again.
int becomeNobody(char** argv) {
  if (::setgroups(0, nullptr) != 0 || ::setresgid(kNobody, kNobody, kNobody) != 0 ||
      ::setresuid(kNobody, kNobody, kNobody) != 0) {
    std::perror("give up root");
    return 1;
  }
  ::execv("/proc/self/exe", argv);
  std::perror("exec as nobody");
  return 1;
}

}  // namespace

int __wrap_main(int argc, char** argv) {
  if (::geteuid() == 0) {
    return becomeNobody(argv);
  }
  ::signal(SIGPIPE, SIG_IGN);
  return __real_main(argc, argv);
}
