// Nothing outlives the sidecar, and the sidecar does not outlive its host.
#include "tests/attacks/attempts.h"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace stitchkit::testing {
namespace {

struct Situation {
  explicit Situation(StartAs startAs, Wiring wiring = Wiring::kPipes)
      : sidecar(optionsOf(startAs, wiring)), session(sidecar) {
    request = sidecar.request("session.run", session.commandParams({"/bin/sh", "-c", "sleep " + marker}));
    Json params = session.commandParams({"/bin/sh", "-c", "setsid sleep " + marker + " & sleep " + marker});
    params["stream"] = true;
    sidecar.call("session.spawn", params);
    REQUIRE(eventually([&] { return guestsAlive(marker).size() >= 4; }));
  }

  SidecarOptions optionsOf(StartAs startAs, Wiring wiring) {
    SidecarOptions options;
    options.startAs = startAs;
    options.wiring = wiring;
    options.state = state = std::make_shared<StateDirectory>(startAs);
    return options;
  }

  // The lease is free: a second sidecar attaches.
  void checkLeaseIsFree(StartAs startAs) {
    SidecarOptions options;
    options.startAs = startAs;
    options.state = state;
    Sidecar second(std::move(options));
    Session again(second, "deny-all", session.state());
    CHECK(again.run({"/bin/echo", "mine"}).out == "mine\n");
  }

  std::shared_ptr<StateDirectory> state;
  const std::string marker = "60.0" + uniqueDigits();
  Sidecar sidecar;
  Session session;
  std::int64_t request = 0;
};

TEST_CASE("the host dies: guests are killed and the lease is free at once") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  const Wiring wiring = GENERATE(Wiring::kPipes, Wiring::kSocketPair);
  CAPTURE(startAs, static_cast<int>(wiring));
  Situation now(startAs, wiring);
  now.sidecar.closeInput();
  now.sidecar.closeOutput();
  const auto ended = now.sidecar.waitForExit(Milliseconds(15000));
  REQUIRE(ended);
  CHECK(ended->signal == 0);
  CHECK(guestsAlive(now.marker).empty());
  CHECK(onlyDescendants({}));
  now.checkLeaseIsFree(startAs);
}

TEST_CASE("stdout is closed while commands live: the sidecar ends with an error, not by a signal, and kills them") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  Situation now(startAs);
  now.sidecar.closeOutput();
  const auto ended = now.sidecar.waitForExit(Milliseconds(15000));
  REQUIRE(ended);
  CHECK(ended->signal == 0);
  CHECK(ended->code > 0);
  CHECK(guestsAlive(now.marker).empty());
  CHECK(onlyDescendants({}));
}

TEST_CASE("stdout is closed with answers on their way") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  Situation now(startAs);
  now.sidecar.pauseReading();
  for (int i = 0; i < 50; ++i) {
    now.sidecar.request("rpc.discover");
  }
  now.sidecar.closeOutput();
  const auto ended = now.sidecar.waitForExit(Milliseconds(15000));
  REQUIRE(ended);
  CHECK(ended->signal == 0);
  CHECK(ended->code > 0);
  CHECK(guestsAlive(now.marker).empty());
}

TEST_CASE("SIGTERM and SIGINT end everything at once") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  const int signal = GENERATE(SIGTERM, SIGINT);
  CAPTURE(startAs, signal);
  Situation now(startAs);
  now.sidecar.kill(signal);
  REQUIRE(now.sidecar.waitForExit(Milliseconds(15000)));
  CHECK(guestsAlive(now.marker).empty());
  CHECK(onlyDescendants({}));
}

TEST_CASE("SIGKILL, SIGSEGV and SIGABRT of the sidecar leave no guest") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  const int signal = GENERATE(SIGKILL, SIGSEGV, SIGABRT);
  CAPTURE(startAs, signal);
  Situation now(startAs);
  now.sidecar.kill(signal);
  REQUIRE(now.sidecar.waitForExit(Milliseconds(15000)));
  CHECK(noGuestSoon(now.marker, Milliseconds(15000)));
  CHECK(onlyDescendants({}));
}

TEST_CASE("a warden that is killed is replaced: commands go on, and the next guest is guarded like the first") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  SidecarOptions options;
  options.startAs = startAs;
  Sidecar sidecar(options);
  Session session(sidecar);
  std::vector<pid_t> wardens;
  // It gives itself its name.
  REQUIRE(eventually([&] { return (wardens = wardensOf(sidecar.pid())).size() == 1; }));
  REQUIRE(::kill(wardens.front(), SIGKILL) == 0);
  CHECK(session.run({"/bin/true"}).exitCode == 0);
  const std::string program = session.install("pid1_takeover");
  const std::string marker = "m" + uniqueDigits();
  Json params = session.commandParams({program, marker});
  params["stream"] = true;
  sidecar.call("session.spawn", params);
  REQUIRE(sidecar.outputBytes().starts_with("takeover="));
  sidecar.kill(SIGKILL);
  REQUIRE(sidecar.waitForExit());
  CHECK(noGuestSoon(marker, Milliseconds(15000)));
  killAll(marker);
}

TEST_CASE("a guest that makes its pid 1 forget its parent does not outlive anything either") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  const std::string end = GENERATE("deadline", "process.stop", "handle.stop", "SIGTERM", "SIGKILL");
  CAPTURE(startAs, end);
  SidecarOptions options;
  options.startAs = startAs;
  Sidecar sidecar(options);
  Session session(sidecar);
  const std::string program = session.install("pid1_takeover");
  const std::string marker = "m" + uniqueDigits();
  Json params = session.commandParams({program, marker}, {{"timeoutMs", end == "deadline" ? 3000 : 50000}});
  params["stream"] = true;
  const Json process = sidecar.call("session.spawn", params).at("process");
  const std::string said = sidecar.outputBytes();
  CAPTURE(said);
  REQUIRE(said.starts_with("takeover="));
  if (end == "deadline") {
    CHECK(sidecar.callError("process.result", {{"process", process}}).at("/data/reason"_json_pointer) == "deadline");
  } else if (end == "process.stop") {
    sidecar.call("process.stop", {{"process", process}});
  } else if (end == "handle.stop") {
    session.stop();
  } else {
    sidecar.kill(end == "SIGTERM" ? SIGTERM : SIGKILL);
    REQUIRE(sidecar.waitForExit());
  }
  CHECK(noGuestSoon(marker, Milliseconds(15000)));
  if (!sidecar.running()) {
    // Whatever the sidecar's death has left, its successor has not.
    options.state = sidecar.state();
    Sidecar successor(options);
    const Session taken(successor, "deny-all", session.state());
    CHECK(guestsAlive(marker).empty());
  }
  killAll(marker);
}

TEST_CASE("the end of input waits for requests in flight and for nothing else") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  SidecarOptions options;
  options.startAs = startAs;
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  const std::string marker = "60.0" + uniqueDigits();
  sidecar.call("session.spawn", session.commandParams({"/bin/sleep", marker}));
  const auto id = sidecar.request("session.run", session.commandParams({"/bin/sh", "-c", "sleep 1; echo last"}));
  sidecar.closeInput();
  CHECK(sidecar.response(id).at("result").at("stdout") == "last\n");
  const auto ended = sidecar.waitForExit(Milliseconds(15000));
  REQUIRE(ended);
  CHECK(ended->code == 0);
  CHECK(guestsAlive(marker).empty());
}

}  // namespace
}  // namespace stitchkit::testing
