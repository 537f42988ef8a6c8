// Standard streams: never inherited, never waited for, bounded (cases/process.md, 15 and 22).
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <catch2/catch.hpp>
#include <chrono>

#include "tests/launch/launch_fixture.h"

using namespace stitchkit;
using namespace stitchkit::test;

TEST_CASE("without input the guest reads the end", "[guest][streams]") {
  LaunchFixture fixture;
  const GuestOutcome outcome = fixture.runShell("cat; readlink /proc/self/fd/0");
  CHECK(outcome.standardOutput == "/dev/null\n");
}

TEST_CASE("input that nobody reads is no failure", "[guest][streams]") {
  LaunchFixture fixture;
  const std::string large(5U << 20, 'x');
  CHECK(fixture.run(LaunchFixture::command("/usr/bin/true"), large)->exitCode == 0);
  CHECK(fixture.runShell("exec <&-; exit 3", large).exitCode == 3);
}

TEST_CASE("a megabyte goes in and comes out as it was", "[guest][streams]") {
  LaunchFixture fixture;
  std::string bytes;
  for (std::size_t i = 0; i < (1U << 20); ++i) {
    bytes.push_back(static_cast<char>(i * 2654435761U >> 13));
  }
  const Result<GuestOutcome> outcome = fixture.run(LaunchFixture::command("cat"), bytes);
  REQUIRE(outcome.has_value());
  CHECK(outcome->standardOutput == bytes);
}

TEST_CASE("the output budget is exact over both channels", "[guest][streams]") {
  LaunchFixture fixture;
  Command command = LaunchFixture::shell("head -c 70000 /dev/zero; head -c 30000 /dev/zero >&2");
  command.maxOutputBytes = 100000;
  const Result<GuestOutcome> exact = fixture.run(command);
  REQUIRE(exact.has_value());
  CHECK(exact->cause == EndCause::kExited);
  CHECK(exact->exitCode == 0);
  CHECK(exact->standardOutput.size() == 70000);
  CHECK(exact->standardError.size() == 30000);

  command.maxOutputBytes = 99999;
  const Result<GuestOutcome> over = fixture.run(command);
  REQUIRE(over.has_value());
  CHECK(over->cause == EndCause::kOutputBudget);
  CHECK(over->exitCode == 137);
  CHECK(over->standardOutput.size() + over->standardError.size() == 99999);

  command = LaunchFixture::command("printf", {"abc"});
  command.maxOutputBytes = 2;
  const Result<GuestOutcome> small = fixture.run(command);
  REQUIRE(small.has_value());
  CHECK(small->cause == EndCause::kOutputBudget);
  CHECK(small->standardOutput == "ab");
}

TEST_CASE("a flood is cut at the budget, and does not stop the deadline", "[guest][streams]") {
  LaunchFixture fixture;
  Command command = LaunchFixture::command("yes");
  command.maxOutputBytes = 1U << 20;
  const Result<GuestOutcome> cut = fixture.run(command);
  REQUIRE(cut.has_value());
  CHECK(cut->cause == EndCause::kOutputBudget);
  CHECK(cut->standardOutput.size() == (1U << 20));

  command.maxOutputBytes = std::uint64_t{1} << 40;
  command.timeout = std::chrono::milliseconds(300);
  std::uint64_t seen = 0;
  GuestOptions options;
  options.onOutput = [&seen](OutputChannel, std::string_view bytes) { seen += bytes.size(); };
  const auto begin = std::chrono::steady_clock::now();
  const Result<GuestOutcome> late = fixture.run(command, {}, options);
  REQUIRE(late.has_value());
  CHECK(late->cause == EndCause::kDeadline);
  CHECK(seen > (1U << 20));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(15));
}

TEST_CASE("a background child that holds the pipe does not keep the call waiting", "[guest][streams]") {
  LaunchFixture fixture;
  const std::string marker = "60." + std::to_string(::getpid()) + "15";
  const std::vector<std::pair<std::string, int>> scripts{
      {"sleep " + marker + " & echo hi", 0},
      {"setsid sleep " + marker + " >/dev/null 2>&1 </dev/null & echo hi", 0},
      {"(sleep " + marker + " >&2 &) ; echo hi; exit 3", 3}};
  for (const auto& [script, code] : scripts) {
    const auto begin = std::chrono::steady_clock::now();
    const GuestOutcome outcome = fixture.runShell(script);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(15));
    CHECK(outcome.exitCode == code);
    CHECK(outcome.standardOutput == "hi\n");
    CHECK(processesNamed(marker) == 0);
  }
}

TEST_CASE("a guest that reads its own output pipe does not stop the loop", "[guest][streams]") {
  LaunchFixture fixture;
  Command command = LaunchFixture::shell("cat /proc/self/fd/1 >/dev/null & while :; do echo x; done");
  command.timeout = std::chrono::milliseconds(300);
  const auto begin = std::chrono::steady_clock::now();
  const Result<GuestOutcome> outcome = fixture.run(command);
  REQUIRE(outcome.has_value());
  CHECK(outcome->exitCode == 137);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(15));
}

TEST_CASE("output streams in order, all of it before the completion", "[guest][streams]") {
  LaunchFixture fixture;
  for (int round = 0; round < 20; ++round) {
    std::string output;
    GuestOptions options;
    options.onOutput = [&output](OutputChannel channel, std::string_view bytes) {
      CHECK(channel == OutputChannel::kStdout);
      output += bytes;
    };
    const Result<GuestOutcome> outcome =
        fixture.run(LaunchFixture::shell("printf a; sleep .01; printf b; exit 7"), {}, options);
    REQUIRE(outcome.has_value());
    CHECK(outcome->exitCode == 7);
    CHECK(outcome->standardOutput.empty());
    CHECK(output == "ab");
  }
}

TEST_CASE("paused output reaches back to the guest", "[guest][streams]") {
  LaunchFixture fixture;
  constexpr std::size_t kBytes = 4U << 20;
  std::size_t seen = 0;
  std::size_t seenWhilePaused = 0;
  bool done = false;
  std::shared_ptr<Guest> guest;
  boost::asio::steady_timer timer(fixture.io);
  GuestOptions options;
  options.onOutput = [&](OutputChannel, std::string_view bytes) {
    if (seen == 0) {
      guest->pauseOutput();
      timer.expires_after(std::chrono::milliseconds(200));
      timer.async_wait([&](auto) {
        seenWhilePaused = seen;
        CHECK(!done);
        guest->resumeOutput();
      });
    }
    seen += bytes.size();
  };
  guest = fixture.start(LaunchFixture::command("head", {"-c", std::to_string(kBytes), "/dev/zero"}), {}, options,
                        [&](Result<GuestOutcome> outcome) {
                          done = true;
                          REQUIRE(outcome.has_value());
                          CHECK(outcome->exitCode == 0);
                        });
  fixture.io.run();
  CHECK(done);
  CHECK(seenWhilePaused <= 128U * 1024);
  CHECK(seen == kBytes);
}

TEST_CASE("deadline and kill work while output is paused", "[guest][streams]") {
  LaunchFixture fixture;
  Command command = LaunchFixture::command("yes");
  command.timeout = std::chrono::milliseconds(200);
  command.maxOutputBytes = std::uint64_t{1} << 40;
  std::shared_ptr<Guest> guest;
  GuestOptions options;
  options.onOutput = [&](OutputChannel, std::string_view) { guest->pauseOutput(); };
  EndCause cause = EndCause::kExited;
  guest = fixture.start(command, {}, options, [&](Result<GuestOutcome> outcome) { cause = outcome.value().cause; });
  fixture.io.run();
  CHECK(cause == EndCause::kDeadline);
}
