// process 17 and 18: kills in the first milliseconds, and the end of the thread that launched.
#include "tests/attacks/attempts.h"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <random>
#include <thread>

namespace stitchkit::testing {
namespace {

constexpr int kCancels = 200;
constexpr int kKills = 50;

std::chrono::microseconds moment() {
  static std::mt19937 generator(20240607);  // the same moments in each run
  return std::chrono::microseconds(std::uniform_int_distribution<int>(0, 8000)(generator));
}

TEST_CASE("a cancel in the first milliseconds leaves nobody") {
  SidecarOptions options;
  options.startAs = GENERATE(from_range(startModes()));
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  const std::string marker = "30.0" + uniqueDigits();
  for (int i = 0; i < kCancels; ++i) {
    const auto id = sidecar.request("session.run", session.commandParams({"/bin/sleep", marker}));
    std::this_thread::sleep_for(moment());
    sidecar.cancel(id);
    const Json answer = sidecar.response(id, Milliseconds(15000));
    CAPTURE(i, answer.dump());
    REQUIRE(answer.at("/error/code"_json_pointer) == -32800);
  }
  CHECK(noGuestSoon(marker, Milliseconds(15000)));
  CHECK(eventually([&] { return commandsOf(sidecar.pid()).empty(); }, Milliseconds(15000)));
  CHECK(countersOf(sidecar.pid()).zombies == 0);
  // And it still works.
  CHECK(session.run({"/bin/echo", "hi"}).out == "hi\n");
}

TEST_CASE(
    "a spawn that is cancelled in the first milliseconds is answered when nobody is left, and its output is nobody's") {
  SidecarOptions options;
  options.startAs = GENERATE(from_range(startModes()));
  options.arguments = {"--max-concurrent-commands", "1"};
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  const std::string marker = "30.0" + uniqueDigits();
  for (int i = 0; i < kCancels; ++i) {
    Json params = session.commandParams({"/bin/sh", "-c", "echo x; exec sleep " + marker});
    params["stream"] = true;
    const auto id = sidecar.request("session.spawn", params);
    std::this_thread::sleep_for(moment());
    sidecar.cancel(id);
    const Json answer = sidecar.response(id);
    CAPTURE(i, answer.dump());
    if (answer.contains("result")) {
      sidecar.call("process.stop", {{"process", answer["result"]["process"]}});
    } else {
      REQUIRE(answer.at("/error/code"_json_pointer) == -32800);
    }
    REQUIRE(guestsAlive(marker).empty());
    REQUIRE(session.run({"/bin/echo", "hi"}).out == "hi\n");
  }
}

TEST_CASE("a stop in the first milliseconds leaves nobody") {
  SidecarOptions options;
  options.startAs = GENERATE(from_range(startModes()));
  Sidecar sidecar(std::move(options));
  const std::string marker = "30.0" + uniqueDigits();
  Json state;
  for (int i = 0; i < 30; ++i) {
    auto session =
        state.is_null() ? std::make_unique<Session>(sidecar) : std::make_unique<Session>(sidecar, "deny-all", state);
    state = session->state();
    const auto id = sidecar.request("session.run", session->commandParams({"/bin/sleep", marker}));
    std::this_thread::sleep_for(moment());
    session->stop();
    // The stop barrier: when it answers they are gone, not soon.
    REQUIRE(guestsAlive(marker).empty());
    const Json answer = sidecar.response(id);
    CAPTURE(i, answer.dump());
    REQUIRE(answer.is_object());
  }
  CHECK(eventually([&] { return descendantsOf(sidecar.pid()).empty(); }, Milliseconds(15000)));
}

TEST_CASE("SIGKILL of the sidecar in the first milliseconds of a command leaves nobody") {
  SidecarOptions options;
  options.startAs = GENERATE(from_range(startModes()));
  options.state = std::make_shared<StateDirectory>(options.startAs);
  const std::string marker = "30.0" + uniqueDigits();
  for (int i = 0; i < kKills; ++i) {
    Sidecar sidecar(options);
    Session session(sidecar);
    sidecar.request("session.run", session.commandParams({"/bin/sleep", marker}));
    std::this_thread::sleep_for(moment());
    sidecar.kill(SIGKILL);
    REQUIRE(sidecar.waitForExit()->signal == SIGKILL);
  }
  CHECK(noGuestSoon(marker, Milliseconds(15000)));
  CHECK(onlyDescendants({}));
}

TEST_CASE("control: --die-with-parent alone does not outlive the first milliseconds") {
  const std::string marker = "30.0" + uniqueDigits();
  for (int i = 0; i < 20; ++i) {
    // The parent of bwrap is a shell that dies right after starting it.
    auto argv = weakSandboxCommand();
    std::string line;
    for (const auto& word : argv) {
      line += word + " ";
    }
    SpawnOptions options;
    options.argv = {"/bin/sh", "-c", line + "--die-with-parent /bin/sleep " + marker + " & kill -9 $$"};
    options.user = ordinaryUser();
    waitForChild(spawnProgram(options), Milliseconds(15000));
  }
  std::this_thread::sleep_for(Milliseconds(200));  // longer than a start takes: this is about what never ends
  CHECK_FALSE(guestsAlive(marker).empty());
  REQUIRE(killAll(marker));
  CHECK(onlyDescendants({}));
}

TEST_CASE("a hundred commands live as long as they should, whatever becomes of the threads that took the requests") {
  SidecarOptions options;
  options.startAs = GENERATE(from_range(startModes()));
  options.arguments = {"--max-concurrent-commands", "128"};
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  const std::string seconds = "5.0" + uniqueDigits();
  const auto started = std::chrono::steady_clock::now();
  std::vector<std::int64_t> requests;
  for (int i = 0; i < 100; ++i) {
    requests.push_back(sidecar.request(
        "session.spawn", session.commandParams({"/bin/sh", "-c", "sleep " + seconds + " && echo whole"})));
  }
  std::vector<Json> processes;
  for (const auto id : requests) {
    processes.push_back(sidecar.response(id).at("result").at("process"));
  }
  // Idle meanwhile: nothing keeps a pool's threads busy.
  for (const auto& process : processes) {
    const Json result = sidecar.call("process.result", {{"process", process}}, Milliseconds(30000));
    CAPTURE(result.dump());
    REQUIRE(result.at("exitCode") == 0);
    REQUIRE(result.at("stdout").at("base64") == "d2hvbGUK");
  }
  CHECK(std::chrono::steady_clock::now() - started >= std::chrono::seconds(5));
  CHECK(noGuestSoon(seconds, Milliseconds(0)));
}

}  // namespace
}  // namespace stitchkit::testing
