// Nothing outlives its command, and nothing outlives the sidecar (cases/process.md, 16 and 17).
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/steady_timer.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <random>
#include <thread>

#include "tests/launch/launch_fixture.h"

using namespace stitchkit;
using namespace stitchkit::test;
using namespace std::chrono_literals;

namespace {

std::string marker() {
  static int count = 0;
  return "300." + std::to_string(::getpid()) + "17" + std::to_string(++count);
}

}  // namespace

TEST_CASE("the deadline beats a stubborn tree", "[guest][kill]") {
  LaunchFixture fixture;
  const std::string name = marker();
  for (const std::string script :
       {"trap '' TERM INT HUP; echo start; while :; do :; done",
        "mkfifo p$$; (while :; do echo x; sleep 0.1; done) > p$$ & echo start; cat p$$", "echo start; kill -STOP $$",
        "echo start; setsid sleep $0 & sleep $0 & kill -STOP -1; wait"}) {
    Command command = LaunchFixture::command("/bin/sh", {"-c", script, name});
    // The deadline must leave the machine the time to start it.
    bool begun = false;
    for (command.timeout = 300ms; !begun && command.timeout < 30s; command.timeout *= 4) {
      const auto begin = std::chrono::steady_clock::now();
      const Result<GuestOutcome> outcome = fixture.run(command);
      const auto taken = std::chrono::steady_clock::now() - begin;
      REQUIRE(outcome.has_value());
      CHECK(outcome->cause == EndCause::kDeadline);
      CHECK(outcome->exitCode == 137);
      CHECK(taken >= command.timeout);
      CHECK(taken < command.timeout + 15s);
      begun = outcome->standardOutput.starts_with("start\n");
    }
    CHECK(begun);
    CHECK(liveSandboxes() == 0);
    CHECK(processesNamed(name) == 0);
  }
}

TEST_CASE("killed at any time from the start on, nothing is left", "[guest][kill]") {
  LaunchFixture fixture;
  const PreparedProfile profile = fixture.prepared();
  REQUIRE(fixture.run(LaunchFixture::command("/usr/bin/true")).has_value());
  std::minstd_rand random(17);
  const int descriptors = openDescriptors();
  int wrong = 0;
  int left = 0;
  for (int round = 0; round < 200; ++round) {
    const std::string name = marker();
    std::shared_ptr<Guest> guest = Guest::start(
        fixture.io, profile, LaunchFixture::command("sleep", {name}), {}, {}, [&](Result<GuestOutcome> outcome) {
          wrong += outcome && outcome->cause == EndCause::kCancelled && outcome->exitCode == 137 ? 0 : 1;
          left += liveSandboxes() + processesNamed(name);
        });
    boost::asio::steady_timer timer(fixture.io, std::chrono::microseconds(random() % 8000));
    timer.async_wait([&guest](auto) { guest->kill(EndCause::kCancelled); });
    fixture.io.restart();
    fixture.io.run();
  }
  CHECK(wrong == 0);
  CHECK(left == 0);
  CHECK(zombies() == 0);
  CHECK(openDescriptors() == descriptors);
}

TEST_CASE("the first cause wins", "[guest][kill]") {
  LaunchFixture fixture;
  std::shared_ptr<Guest> guest;
  EndCause cause = EndCause::kExited;
  guest = fixture.start(LaunchFixture::command("sleep", {"30"}), {}, {},
                        [&](Result<GuestOutcome> outcome) { cause = outcome.value().cause; });
  guest->kill(EndCause::kStopped);
  guest->kill(EndCause::kCancelled);
  fixture.io.run();
  CHECK(cause == EndCause::kStopped);
  guest->kill(EndCause::kCancelled);  // after the end: nothing to hit
}

TEST_CASE("when the sidecar is killed at any time, nothing is left", "[guest][kill]") {
  LaunchFixture fixture;
  const PreparedProfile profile = fixture.prepared();
  std::minstd_rand random(18);
  for (int round = 0; round < 100; ++round) {
    const std::string name = marker();
    const pid_t sidecar = ::fork();
    REQUIRE(sidecar >= 0);
    if (sidecar == 0) {
      boost::asio::io_context io;
      const auto guest = Guest::start(io, profile, LaunchFixture::command("sleep", {name}), {}, {}, [](auto) {});
      io.run();
      ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 8000));
    ::kill(sidecar, SIGKILL);
    ::waitpid(sidecar, nullptr, 0);
    CHECK(eventually([&] { return liveSandboxes() + processesNamed(name) == 0; }));
  }
}

TEST_CASE("a detached child is gone when the command is", "[guest][kill]") {
  LaunchFixture fixture;
  const std::string name = marker();
  CHECK(fixture.runShell("setsid sh -c 'setsid sleep " + name + " & setsid sleep " + name + " &' ; sleep .1; echo ok")
            .standardOutput == "ok\n");
  CHECK(processesNamed(name) == 0);
}

TEST_CASE("a foreign signal to bwrap is no command's result", "[guest][kill]") {
  LaunchFixture fixture;
  std::optional<Result<GuestOutcome>> result;
  GuestOptions options;
  options.onStarted = [](Result<void> started) {
    REQUIRE(started.has_value());
    // Outer bwrap is the only child of this process.
    const std::string children = readFile("/proc/self/task/" + std::to_string(::getpid()) + "/children");
    REQUIRE(::kill(std::stoi(children), SIGKILL) == 0);
  };
  fixture.start(LaunchFixture::command("sleep", {"30"}), {}, options,
                [&](Result<GuestOutcome> outcome) { result.emplace(std::move(outcome)); });
  fixture.io.run();
  REQUIRE(result.has_value());
  REQUIRE(!result->has_value());
  CHECK(result->error().kind == ErrorKind::kUnavailable);
  CHECK(liveSandboxes() == 0);
}
