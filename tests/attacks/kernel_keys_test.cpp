// Kernel keys belong to the host's user, whom all guests share, and are in no namespace: one session could leave them
// for another.
#include "tests/attacks/attempts.h"

#include <catch2/catch.hpp>

namespace stitchkit::testing {
namespace {

TEST_CASE("no kernel key is made, found or read") {
  const Footing footing = GENERATE(from_range(footings()));
  CAPTURE(footing);
  Sidecar sidecar(optionsFor(footing));
  for (const char* policy : {"deny-all", "allow-all"}) {
    Session session(sidecar, policy);
    const auto tries = session.run({session.install("kernel_keys")});
    CAPTURE(policy, tries.out, tries.err);
    REQUIRE(attemptsOf(tries.out).size() == 4);
    CHECK(succeeded(attemptsOf(tries.out)).empty());
  }
}

TEST_CASE("control: without the filter a key is made, found and read") {
  const auto output = runProgram({hostProgram("kernel_keys")}).output;
  CAPTURE(output);
  CHECK(succeeded(attemptsOf(output)).size() == 4);
}

}  // namespace
}  // namespace stitchkit::testing
