#define CATCH_CONFIG_RUNNER
#include "tests/support/catch_runner.h"

#include <catch2/catch.hpp>

int stitchkit::testing::runCatch(int argc, char** argv) {
  return Catch::Session().run(argc, argv);
}
