// The main of every test that runs guests. Catch2 v2.
#define CATCH_CONFIG_RUNNER
#include "tests/support/host_checks.h"
#include "tests/support/processes.h"

#include <signal.h>

#include <catch2/catch.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  stitchkit::testing::becomeSubreaper();
  const std::string problem = stitchkit::testing::isolationProblem();
  if (!problem.empty()) {
    std::fprintf(stderr, "FAILED before any test: this machine cannot isolate guests.\n%s\n", problem.c_str());
    return 1;
  }
  return Catch::Session().run(argc, argv);
}
