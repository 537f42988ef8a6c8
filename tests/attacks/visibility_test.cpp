// security 44: what a guest reads below /proc of other processes, pid 1 above all.
#include "tests/attacks/attempts.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace stitchkit::testing {
namespace {

const std::string kLook =
    "for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/1/environ /proc/1/cmdline; do tr '\\0' '\\n' < $f; done "
    "2>&1; true";

TEST_CASE("no secret of the sidecar, no value of another command and no host path stands below /proc") {
  const Footing footing = GENERATE(from_range(footings()));
  CAPTURE(footing);
  SidecarOptions options = optionsFor(footing);
  options.environment = {"HOST_TOKEN=t0p-secret"};
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  const std::string marker = "60.0" + uniqueDigits();
  sidecar.call("session.spawn",
               session.commandParams({"/bin/sleep", marker}, {{"environment", {{"OTHER", "other-secret"}}}}));
  REQUIRE(eventually([&] { return !guestsAlive(marker).empty(); }));

  const auto seen = session.sh(kLook, {{"environment", {{"OWN", "own-value"}}}});
  REQUIRE(seen.exitCode == 0);
  const std::string all = seen.out + seen.err;
  CHECK(all.find("t0p-secret") == std::string::npos);
  CHECK(all.find("other-secret") == std::string::npos);
  CHECK(all.find(marker) == std::string::npos);
  CHECK(all.find(sidecar.state()->folder().path()) == std::string::npos);
  // It does see itself, so it has looked.
  CHECK(all.find("OWN=own-value") != std::string::npos);

  // The command's values are not on show for the host's other users either.
  const auto onHost = guestsAlive("own-value");
  CHECK(onHost.empty());
}

TEST_CASE("control: a plain bwrap shows its environment and its arguments") {
  const ScratchFolder folder(ordinaryUser());
  const auto seen = weakSandbox({"--clearenv", "--setenv", "PATH", "/usr/bin", "--bind", folder.path(), "/workspace"},
                                {"/bin/sh", "-c", kLook}, kOrdinaryUid, {"PATH=/usr/bin", "HOST_TOKEN=t0p-secret"});
  REQUIRE(seen.output.find("t0p-secret") != std::string::npos);
  REQUIRE(seen.output.find(folder.path()) != std::string::npos);
}

TEST_CASE("pid 1 of the sandbox gives nothing away and cannot be killed from inside") {
  Sidecar sidecar(optionsFor(GENERATE(from_range(footings()))));
  Session session(sidecar);
  const std::string program = session.install("pid1");
  const auto tries = session.run({program});
  CAPTURE(tries.out);
  REQUIRE(tries.exitCode == 0);
  REQUIRE(attemptsOf(tries.out).at("alive-after-kill") == "ok");
  // Whatever of pid 1 can be opened leads to nothing of the host's: its root is the guest's, its descriptors are no
  // files and no sockets.
  CHECK(session.sh("cat /proc/1/root/etc/passwd 2>/dev/null | cmp - /etc/passwd || ! ls /proc/1/root/").exitCode == 0);
  CHECK(session.sh("ls -l /proc/1/fd 2>/dev/null | grep -E 'socket:|-> /' | grep -v /dev/null").out == "");
  for (const pid_t host : {sidecar.pid(), ::getpid()}) {
    const auto others = succeeded(attemptsOf(session.run({program, std::to_string(host)}).out));
    CHECK(others == std::set<std::string>{"alive-after-kill"});
  }
}

TEST_CASE("what a guest writes into the streams of its pid 1 is bounded and changes no result") {
  Sidecar sidecar(optionsFor(GENERATE(from_range(footings()))));
  Session session(sidecar);
  const long before = countersOf(sidecar.pid()).residentKib;
  // A full pipe is the guest's own problem: nobody has to read it. Hence the time limits.
  const auto flooded = session.sh(
      "timeout 2 sh -c 'echo \"bwrap: setting up uid map: Permission denied\" > /proc/1/fd/2'; "
      "for n in 1 2; do timeout 2 sh -c \"head -c 50000000 /dev/zero > /proc/1/fd/$n\"; done 2>/dev/null; "
      "echo done; exit 5");
  CHECK(flooded.exitCode == 5);
  CHECK(flooded.out == "done\n");
  CHECK(countersOf(sidecar.pid()).residentKib - before < 32L * 1024);
  // An exit code cannot be forged either: bwrap hands it on by an eventfd.
  const auto forged = session.sh(
      "for f in /proc/1/fd/*; do case $(readlink $f) in *eventfd*) printf '\\010\\0\\0\\0\\0\\0\\0\\0' > $f;; esac; "
      "done 2>/dev/null; exit 3");
  CHECK((forged.exitCode == 3 || forged.exitCode == 7));
}

TEST_CASE("control: the same program takes over a process that it can reach") {
  SpawnOptions options;
  options.argv = {"/bin/sleep", "60"};
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  options.descriptors = {{null.get(), 0}};
  options.user = ordinaryUser();
  const pid_t victim = spawnProgram(options);
  const auto tries = runProgram({hostProgram("pid1"), std::to_string(victim)}, ordinaryUser());
  CAPTURE(tries.output);
  const auto names = succeeded(attemptsOf(tries.output));
  CHECK(names.count("ptrace") == 1);
  CHECK(names.count("open-mem") == 1);
  CHECK(names.count("pidfd-getfd") == 1);
  REQUIRE(waitForChild(victim, Milliseconds(15000))->signal == SIGKILL);
}

}  // namespace
}  // namespace stitchkit::testing
