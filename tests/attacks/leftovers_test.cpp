// process 15, 16, 21: descendants that leave, pipes that are held, trees that do not want to end.
#include "tests/attacks/attempts.h"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace stitchkit::testing {
namespace {

using Clock = std::chrono::steady_clock;

TEST_CASE("background children end with their command and do not keep the call waiting") {
  SidecarOptions options;
  options.startAs = GENERATE(from_range(startModes()));
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  const std::string marker = "60.0" + uniqueDigits();
  struct Case {
    std::string script;
    int exitCode;
    std::string out;
  };
  for (const Case& one :
       std::vector<Case>{{"sleep M & echo hi", 0, "hi\n"},
                         {"setsid sleep M >/dev/null 2>&1 </dev/null & echo hi", 0, "hi\n"},
                         {"(sleep M >&2 &) ; exit 3", 3, ""},
                         {"setsid sh -c 'trap \"\" TERM HUP INT; sleep M' & echo hi; exit 4", 4, "hi\n"}}) {
    std::string script = one.script;
    script.replace(script.find('M'), 1, marker);
    CAPTURE(script);
    const auto started = Clock::now();
    const auto outcome = session.sh(script);
    CHECK(Clock::now() - started < std::chrono::seconds(15));
    CHECK(outcome.exitCode == one.exitCode);
    CHECK(outcome.out == one.out);
    CHECK(noGuestSoon(marker, Milliseconds(15000)));
  }
}

TEST_CASE("descendants in sessions of their own that ignore every signal end with their command") {
  SidecarOptions options;
  options.startAs = GENERATE(from_range(startModes()));
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  const std::string program = session.install("leaver");
  const std::string marker = "m" + uniqueDigits();
  const auto started = Clock::now();
  const auto left = session.run({program, "5", marker});
  CHECK(Clock::now() - started < std::chrono::seconds(15));
  CHECK(left.exitCode == 5);
  CHECK(left.out == "left\n");
  CHECK(noGuestSoon(marker, Milliseconds(15000)));

  Json params = session.commandParams({program, "6", marker});
  params["stream"] = true;
  const Json process = sidecar.call("session.spawn", params).at("process");
  CHECK(sidecar.notification("process.exit", Milliseconds(15000)).at("params").at("exitCode") == 6);
  CHECK(sidecar.call("process.result", {{"process", process}}).at("exitCode") == 6);
  CHECK(noGuestSoon(marker, Milliseconds(15000)));
}

TEST_CASE("control: without a PID namespace they stay") {
  const std::string marker = "m" + uniqueDigits();
  SpawnOptions options;
  options.argv = {hostProgram("leaver"), "0", marker};
  options.user = ordinaryUser();
  REQUIRE(waitForChild(spawnProgram(options), Milliseconds(15000))->code == 0);
  // What stands between them and the program ends by itself.
  CHECK(eventually([&] { return guestsAlive(marker).size() == 3; }));
  REQUIRE(killAll(marker));
  CHECK(onlyDescendants({}));
}

TEST_CASE("a stdout that was passed to another command does not keep the call waiting") {
  SidecarOptions options;
  options.startAs = GENERATE(from_range(startModes()));
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  const std::string program = session.install("pass_stdout");
  const std::string marker = "m" + uniqueDigits();
  Json params = session.commandParams({program, "receive", "/workspace/s", "60", marker});
  params["stream"] = true;
  const Json holder = sidecar.call("session.spawn", params).at("process");
  sidecar.notification("process.output");  // listening

  const auto started = Clock::now();
  const auto sent = session.run({program, "send", "/workspace/s"});
  CHECK(Clock::now() - started < std::chrono::seconds(15));
  CHECK(sent.exitCode == 0);
  CHECK(sent.out == "passed\n");
  // It was there to hold it the whole time.
  CHECK_FALSE(guestsAlive(marker).empty());
  sidecar.call("process.stop", {{"process", holder}});
  CHECK(guestsAlive(marker).empty());
}

TEST_CASE("deadlines beat trees that do not want to end") {
  SidecarOptions options;
  options.startAs = GENERATE(from_range(startModes()));
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  const std::string marker = "m" + uniqueDigits();
  const std::string script = GENERATE("trap '' TERM INT HUP; echo start; while :; do :; done",
                                      "mkfifo p; (while :; do echo x; sleep 0.1; done) > p & cat p >/dev/null",
                                      "kill -STOP $$", "yes >/dev/null", "exec 1>&- 2>&-; while :; do sleep 1; done",
                                      "setsid sleep 50 & kill -STOP -1; kill -STOP $$");
  CAPTURE(script);
  const auto started = Clock::now();
  const Json error =
      sidecar.callError("session.run", session.commandParams({"/bin/sh", "-c", script, marker}, {{"timeoutMs", 1000}}));
  const auto took = Clock::now() - started;
  CHECK(error.at("/data/code"_json_pointer) == "SANDBOX_LIMIT");
  CHECK(error.at("/data/reason"_json_pointer) == "deadline");
  CHECK(took >= std::chrono::milliseconds(990));
  CHECK(took < std::chrono::seconds(15));
  CHECK(noGuestSoon(marker, Milliseconds(15000)));
}

TEST_CASE("the output budget ends a flood") {
  Sidecar sidecar;
  Session session(sidecar);
  const std::string marker = "m" + uniqueDigits();
  const Json error = sidecar.callError("session.run", session.commandParams({"/usr/bin/yes", marker}));
  CHECK(error.at("/data/code"_json_pointer) == "SANDBOX_LIMIT");
  CHECK(error.at("/data/reason"_json_pointer) == "output-budget");
  CHECK(noGuestSoon(marker, Milliseconds(15000)));
}

TEST_CASE("a guest starts with clean signals") {
  Sidecar sidecar;
  Session session(sidecar);
  const auto status = session.sh("grep -E '^Sig(Blk|Ign)' /proc/self/status");
  CHECK(status.out == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
  const auto pipe = session.sh("yes | head -1");
  CHECK(pipe.out == "y\n");
  CHECK(pipe.err == "");
  CHECK(session.sh("kill -TERM $$").exitCode == 128 + SIGTERM);
}

}  // namespace
}  // namespace stitchkit::testing
