// session 12: whose session it is, when its owner sleeps and when it dies.
#include "tests/attacks/attempts.h"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <algorithm>

namespace stitchkit::testing {
namespace {

using Clock = std::chrono::steady_clock;

SidecarOptions sharing(const std::shared_ptr<StateDirectory>& state, StartAs startAs) {
  SidecarOptions options;
  options.startAs = startAs;
  options.state = state;
  return options;
}

Json attach(Sidecar& sidecar, const Json& state) {
  return sidecar.response(sidecar.request(
      "backend.create", {{"template", state.at("templateKey")}, {"network", "deny-all"}, {"state", state}}));
}

TEST_CASE("an owner keeps its session while it lives, stopped or not, and loses it with its guests when it dies") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  const auto state = std::make_shared<StateDirectory>(startAs);
  Sidecar owner(sharing(state, startAs));
  Session session(owner);
  const std::string marker = "60.0" + uniqueDigits();
  owner.call("session.spawn",
             session.commandParams({"/bin/sh", "-c", "setsid sleep " + marker + " & sleep " + marker}));
  REQUIRE(eventually([&] { return guestsAlive(marker).size() >= 3; }));
  Sidecar other(sharing(state, startAs));
  CHECK(attach(other, session.state()).at("/error/data/code"_json_pointer) == "SANDBOX_BUSY");

  owner.kill(SIGSTOP);
  REQUIRE(eventually([&] { return statusLine(owner.pid(), "State").front() == 'T'; }));
  for (int i = 0; i < 5; ++i) {
    CHECK(attach(other, session.state()).at("/error/data/code"_json_pointer) == "SANDBOX_BUSY");
  }
  CHECK(guestsAlive(marker).size() >= 3);
  owner.kill(SIGCONT);
  CHECK(session.run({"/bin/echo", "still", "mine"}).out == "still mine\n");

  owner.kill(SIGKILL);
  REQUIRE(owner.waitForExit()->signal == SIGKILL);
  const auto died = Clock::now();
  const Json taken = attach(other, session.state());
  const auto took = Clock::now() - died;
  CAPTURE(taken.dump());
  REQUIRE(taken.contains("result"));
  // At the answer, not some time after it.
  CHECK(guestsAlive(marker).empty());
  CHECK(took < std::chrono::milliseconds(1000));
}

TEST_CASE("the session of a dead owner is taken over within 100 ms") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  const auto state = std::make_shared<StateDirectory>(startAs);
  std::vector<std::chrono::microseconds> times;
  Sidecar other(sharing(state, startAs));
  Session warm(other);  // its own, so that the first launch is not counted
  warm.sh("true");
  for (int i = 0; i < 5; ++i) {
    Sidecar owner(sharing(state, startAs));
    Session session(owner);
    const std::string marker = "60.0" + uniqueDigits();
    owner.call("session.spawn", session.commandParams({"/bin/sleep", marker}));
    REQUIRE(eventually([&] { return !guestsAlive(marker).empty(); }));
    owner.kill(SIGKILL);
    REQUIRE(owner.waitForExit());
    const auto died = Clock::now();
    const Json taken = attach(other, session.state());
    times.push_back(std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - died));
    CAPTURE(taken.dump());
    REQUIRE(taken.contains("result"));
    CHECK(guestsAlive(marker).empty());
    other.call("handle.stop", {{"handle", taken["result"]["handle"]}});
  }
  std::sort(times.begin(), times.end());
  CAPTURE(times.front().count(), times[2].count(), times.back().count());
  CHECK(times[2] < std::chrono::milliseconds(100));
}

TEST_CASE("of two that attach at once exactly one wins") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  const auto state = std::make_shared<StateDirectory>(startAs);
  Sidecar first(sharing(state, startAs));
  Sidecar second(sharing(state, startAs));
  Session session(first);
  session.stop();
  for (int i = 0; i < 20; ++i) {
    const Json params{
        {"template", session.state().at("templateKey")}, {"network", "deny-all"}, {"state", session.state()}};
    const auto one = first.request("backend.create", params);
    const auto two = second.request("backend.create", params);
    const Json firstAnswer = first.response(one);
    const Json secondAnswer = second.response(two);
    CAPTURE(i, firstAnswer.dump(), secondAnswer.dump());
    REQUIRE(firstAnswer.contains("result") != secondAnswer.contains("result"));
    Sidecar& winner = firstAnswer.contains("result") ? first : second;
    const Json& won = firstAnswer.contains("result") ? firstAnswer : secondAnswer;
    const Json& lost = firstAnswer.contains("result") ? secondAnswer : firstAnswer;
    CHECK(lost.at("/error/data/code"_json_pointer) == "SANDBOX_BUSY");
    winner.call("handle.stop", {{"handle", won["result"]["handle"]}});
  }
}

}  // namespace
}  // namespace stitchkit::testing
