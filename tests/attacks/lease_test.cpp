// session 12: whose session it is, when its owner sleeps and when it dies.
#include "tests/attacks/attempts.h"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

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
  CHECK(eventually([&] { return guestsAlive(marker).size() >= 3; }));
  owner.kill(SIGCONT);
  CHECK(session.run({"/bin/echo", "still", "mine"}).out == "still mine\n");

  owner.kill(SIGKILL);
  REQUIRE(owner.waitForExit()->signal == SIGKILL);
  const Json taken = attach(other, session.state());
  CAPTURE(taken.dump());
  REQUIRE(taken.contains("result"));
  // At the answer, not some time after it.
  CHECK(guestsAlive(marker).empty());
}

TEST_CASE("the session of a dead owner is taken over at once, again and again") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  const auto state = std::make_shared<StateDirectory>(startAs);
  Sidecar other(sharing(state, startAs));
  for (int i = 0; i < 3; ++i) {
    Sidecar owner(sharing(state, startAs));
    Session session(owner);
    const std::string marker = "60.0" + uniqueDigits();
    owner.call("session.spawn", session.commandParams({"/bin/sleep", marker}));
    REQUIRE(eventually([&] { return !guestsAlive(marker).empty(); }));
    owner.kill(SIGKILL);
    REQUIRE(owner.waitForExit());
    const auto died = Clock::now();
    const Json taken = attach(other, session.state());
    CAPTURE(taken.dump());
    REQUIRE(taken.contains("result"));
    CHECK(Clock::now() - died < std::chrono::seconds(15));  // the dead owner's guests would live for a minute
    CHECK(guestsAlive(marker).empty());
    other.call("handle.stop", {{"handle", taken["result"]["handle"]}});
  }
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
