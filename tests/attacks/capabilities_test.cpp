// security 50: capabilities, nested namespaces, and what could be done with them.
#include "tests/attacks/attempts.h"

#include <catch2/catch.hpp>

namespace stitchkit::testing {
namespace {

const std::string kZero(16, '0');

TEST_CASE("a guest holds no capability and can get none, nor can its pid 1") {
  const Footing footing = GENERATE(from_range(footings()));
  CAPTURE(footing);
  Sidecar sidecar(optionsFor(footing));
  Session session(sidecar);
  for (const char* process : {"self", "1"}) {
    const auto status = session.sh("grep -E '^(Cap|NoNewPrivs)' /proc/" + std::string(process) + "/status");
    CAPTURE(process, status.out);
    for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
      CHECK(status.out.find(std::string(set) + ":\t" + kZero) != std::string::npos);
    }
    CHECK(status.out.find("NoNewPrivs:\t1") != std::string::npos);
  }
}

TEST_CASE("control: without the protection there are capabilities to have") {
  const auto status = runProgram({"/usr/bin/unshare", "-Ur", "grep", "CapEff", "/proc/self/status"}, ordinaryUser());
  REQUIRE(status.output.find("CapEff:") != std::string::npos);
  REQUIRE(status.output.find(kZero) == std::string::npos);
}

TEST_CASE("no way leads to a new user namespace") {
  const Footing footing = GENERATE(from_range(footings()));
  CAPTURE(footing);
  Sidecar sidecar(optionsFor(footing));
  Session session(sidecar);
  const auto tries = session.run({session.install("user_namespaces")});
  CAPTURE(tries.out);
  REQUIRE(attemptsOf(tries.out).size() == 5);
  CHECK(succeeded(attemptsOf(tries.out)).empty());
  CHECK(session.sh("unshare -Urm id -u").exitCode != 0);
  CHECK(session.sh("bwrap --dev-bind / / true").exitCode != 0);
}

TEST_CASE("control: a plain bwrap allows new user namespaces") {
  const auto tries = weakSandbox({"--ro-bind", hostProgram("user_namespaces"), "/tmp/program"}, {"/tmp/program"});
  CAPTURE(tries.output);
  const auto names = succeeded(attemptsOf(tries.output));
  CHECK(names.count("unshare") == 1);
  CHECK(names.count("unshare-mount") == 1);
  CHECK(names.count("clone") == 1);
  CHECK(names.count("clone3") == 1);
}

TEST_CASE("a guest changes nothing about its mounts") {
  const Footing footing = GENERATE(from_range(footings()));
  CAPTURE(footing);
  Sidecar sidecar(optionsFor(footing));
  Session session(sidecar);
  const auto tries = session.run({session.install("mounts")});
  CAPTURE(tries.out);
  REQUIRE(attemptsOf(tries.out).size() == 15);
  CHECK(succeeded(attemptsOf(tries.out)).empty());
}

TEST_CASE("control: the same tries work with the rights of a user namespace of one's own") {
  const auto tries = runProgram({"/usr/bin/unshare", "-Urmpf", "--kill-child", hostProgram("mounts")}, ordinaryUser());
  CAPTURE(tries.output);
  const auto names = succeeded(attemptsOf(tries.output));
  for (const char* name : {"mount-tmpfs", "bind", "chroot", "fsopen", "open-tree"}) {
    CHECK(names.count(name) == 1);
  }
}

TEST_CASE("a bounded fork loop ends at its deadline and leaves nobody") {
  SidecarOptions options;
  options.startAs = GENERATE(from_range(startModes()));
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  const std::string program = session.install("fork_loop");
  const std::string marker = "m" + uniqueDigits();
  // The deadline must leave the machine the time to fork, and us to see it.
  Json answer;
  std::size_t most = 0;
  for (int deadline = 1500; most <= 250 && deadline < 30000; deadline *= 3) {
    const auto id =
        sidecar.request("session.run", session.commandParams({program, "300", marker}, {{"timeoutMs", deadline}}));
    eventually([&] { return (most = guestsAlive(marker).size()) > 250; }, Milliseconds(deadline));
    answer = sidecar.response(id);
    REQUIRE(noGuestSoon(marker));
  }
  CAPTURE(most, answer.dump());
  REQUIRE(most > 250);
  REQUIRE(answer.at("/error/data/code"_json_pointer) == "SANDBOX_LIMIT");
  REQUIRE(answer.at("/error/data/reason"_json_pointer) == "deadline");
}

}  // namespace
}  // namespace stitchkit::testing
