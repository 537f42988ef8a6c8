// rpc 9: a host that does not read.
#include "tests/attacks/attempts.h"

#include <unistd.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <thread>

namespace stitchkit::testing {
namespace {

constexpr int kRuns = 40;
constexpr std::size_t kBytes = 500U * 1024;
// 40 results of 500 KiB as bytes and as text of the answer, the unsent bytes' ceiling, and room to breathe.
constexpr long kGrowthKib = 96L * 1024;

TEST_CASE("while the host does not read: memory is bounded, deadlines fire; then every line arrives whole") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  SidecarOptions options;
  options.startAs = startAs;
  options.arguments = {"--max-concurrent-commands", "64"};
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  session.sh("head -c " + std::to_string(kBytes) + " /dev/zero | tr '\\0' 'z' > big");
  const long before = countersOf(sidecar.pid()).residentKib;
  const std::string marker = "m" + uniqueDigits();

  sidecar.pauseReading();
  // Its budget is more than what is let through until the sidecar holds it back, however early it begins.
  Json flood =
      session.commandParams({"/usr/bin/yes", marker}, {{"timeoutMs", 60000}, {"maxOutputBytes", 64 * 1024 * 1024}});
  flood["stream"] = true;
  const auto flooding = sidecar.request("session.spawn", flood);
  std::vector<std::int64_t> requests;
  for (int i = 0; i < kRuns; ++i) {
    requests.push_back(sidecar.request("session.run", session.commandParams({"/bin/cat", "big"})));
  }
  // It writes when it has begun: a slow machine may not show it to us before its deadline.
  const std::string late = "60.0" + uniqueDigits();
  const auto deadline = sidecar.request(
      "session.run",
      session.commandParams({"/bin/sh", "-c", "echo > begun; sleep " + late + "; :"}, {{"timeoutMs", 2000}}));
  long most = 0;
  const auto sampleUntil = [&](const std::function<bool()>& condition) {
    return eventually([&] {
      most = std::max(most, countersOf(sidecar.pid()).residentKib);
      return condition();
    });
  };
  REQUIRE(sampleUntil([&] { return ::access((session.hostWorkspace() + "/begun").c_str(), F_OK) == 0; }));
  CHECK(sampleUntil([&] { return guestsAlive(late).empty(); }));  // its deadline has passed, read or not
  // And for a while longer, in which an unbounded flood would show.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  sampleUntil([&] { return std::chrono::steady_clock::now() >= until; });
  CHECK_FALSE(guestsAlive(marker).empty());  // held back, not killed
  CAPTURE(before, most);
  if (!isSanitized(sidecar.pid())) {
    CHECK(most - before < kGrowthKib);
  }

  sidecar.resumeReading();
  const Json process = sidecar.response(flooding).at("result").at("process");
  sidecar.call("process.stop", {{"process", process}});
  CHECK(guestsAlive(marker).empty());
  CHECK(sidecar.response(deadline).at("/error/data/reason"_json_pointer) == "deadline");
  const std::string whole(kBytes, 'z');
  for (const auto id : requests) {
    const Json answer = sidecar.response(id);
    REQUIRE(answer.contains("result"));
    REQUIRE(answer["result"]["stdout"].get_ref<const std::string&>() == whole);
  }
}

TEST_CASE("streamed output arrives whole and in order from a slow reader's point of view") {
  Sidecar sidecar;
  Session session(sidecar);
  Json params = session.commandParams({"/bin/sh", "-c", "seq 1 400000"}, {{"maxOutputBytes", 16777216}});
  params["stream"] = true;
  sidecar.call("session.spawn", params);
  sidecar.pauseReading();
  std::this_thread::sleep_for(Milliseconds(300));  // the host is busy with something else
  sidecar.resumeReading();
  std::string output;
  // process.exit comes after the last output.
  REQUIRE(sidecar.notification("process.exit").at("params").at("exitCode") == 0);
  for (std::string piece = sidecar.outputBytes(Milliseconds(0)); !piece.empty();
       piece = sidecar.outputBytes(Milliseconds(0))) {
    output += piece;
  }
  REQUIRE(output.size() > 7);
  CHECK(output.substr(0, 6) == "1\n2\n3\n");
  CHECK(output.substr(output.size() - 7) == "400000\n");
  std::size_t lines = 0;
  std::size_t at = 0;
  bool ordered = true;
  for (auto end = output.find('\n'); end != std::string::npos; end = output.find('\n', at)) {
    ordered = ordered && output.compare(at, end - at, std::to_string(++lines)) == 0;
    at = end + 1;
  }
  CHECK(ordered);
  CHECK(lines == 400000);
}

TEST_CASE("a stderr that nobody reads does not stop the protocol") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  SidecarOptions options;
  options.startAs = startAs;
  options.readStderr = false;
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  const std::string rubbish(30 * 1024, 'r');
  std::vector<std::int64_t> requests;
  for (int i = 0; i < 1000; ++i) {
    requests.push_back(i % 2 == 0 ? sidecar.request("no.such.method", {{"rubbish", rubbish}})
                                  : sidecar.request("session.run", {{"handle", rubbish}, {"unknown", true}}));
  }
  for (const auto id : requests) {
    REQUIRE(sidecar.response(id).contains("error"));
  }
  // Host-level failures log a line each.
  for (int i = 0; i < 200; ++i) {
    sidecar.response(sidecar.request("backend.create", {{"template", std::string(64, 'f')}, {"network", "deny-all"}}));
  }
  CHECK(session.run({"/bin/echo", "hi"}).out == "hi\n");
  session.stop();
}

}  // namespace
}  // namespace stitchkit::testing
