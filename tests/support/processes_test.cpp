#include "tests/support/processes.h"

#include "tests/support/forked.h"
#include "tests/support/scratch.h"
#include "tests/support/spawn.h"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace stitchkit::testing {
namespace {

TEST_CASE("processes are found by their marker and by their ancestor") {
  const std::string marker = "60.0" + uniqueDigits();
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c", "setsid sleep " + marker + " & sleep " + marker + "; :"};
  const pid_t shell = spawnProgram(options);
  REQUIRE(eventually([&] { return descendantsOf(shell).size() == 2; }));
  REQUIRE(
      eventually([&] { return guestsAlive(marker).size() == 3; }));  // not while one of them executes another program
  REQUIRE(countersOf(shell).threads == 1);
  ::kill(shell, SIGKILL);
  REQUIRE(waitForChild(shell, Milliseconds(15000))->signal == SIGKILL);
  // Orphaned, and found all the same.
  REQUIRE(descendantsOf(::getpid()).size() == 2);
  REQUIRE(killAll(marker));
  REQUIRE(eventually([] {
    reapOrphans({});
    return countersOf(::getpid()).zombies == 0;
  }));
}

TEST_CASE("a program gets the descriptors that it is given, and no others") {
  const auto result = runProgram({"/bin/ls", "/proc/self/fd"});
  REQUIRE(result.status.code == 0);
  REQUIRE(result.output == "0\n1\n2\n3\n");
  REQUIRE_THROWS(runProgram({"/nonexistent"}));
}

TEST_CASE("a child can become another user") {
  if (::geteuid() != 0) {
    return;
  }
  const auto outcome =
      runForked([] { return std::to_string(::getuid()) + " " + statusLine(::getpid(), "CapEff"); }, kOrdinaryUid);
  REQUIRE(outcome.text == "65534 0000000000000000");
}

}  // namespace
}  // namespace stitchkit::testing
