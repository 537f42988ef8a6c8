// The main of every test that runs guests. Catch2 v2.
#include "tests/support/catch_main.h"
#include "tests/support/host_checks.h"
#include "tests/support/processes.h"

#include <signal.h>

#include <cstdio>

int __wrap_main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  stitchkit::testing::becomeSubreaper();
  const std::string problem = stitchkit::testing::isolationProblem();
  if (!problem.empty()) {
    std::fprintf(stderr, "FAILED before any test: this machine cannot isolate guests.\n%s\n", problem.c_str());
    return 1;
  }
  return __real_main(argc, argv);
}
