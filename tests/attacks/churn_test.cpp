// process 22: many commands leave the process as it was.
#include "tests/attacks/attempts.h"

#include <unistd.h>

#include <catch2/catch.hpp>

namespace stitchkit::testing {
namespace {

ProcessCounters settledCounters(const Sidecar& sidecar, const ProcessCounters& wanted) {
  ProcessCounters now;
  eventually(
      [&] {
        now = countersOf(sidecar.pid());
        return now.descriptors <= wanted.descriptors && now.threads <= wanted.threads && now.zombies == 0;
      },
      Milliseconds(15000));
  return now;
}

TEST_CASE("five hundred commands later descriptors, threads and zombies are as before") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  SidecarOptions options;
  options.startAs = startAs;
  options.arguments = {"--warm", "0"};  // warm_test.cpp counts where launches wait
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  for (int i = 0; i < 10; ++i) {
    session.run({"/bin/true"});
  }
  const ProcessCounters before = countersOf(sidecar.pid());
  // What the sidecar does not wait for comes to us, as it would come to a PID 1 that may not wait for it.
  const long ours = countersOf(::getpid()).zombies;
  for (int i = 0; i < 500; ++i) {
    switch (i % 5) {
      case 0:
        REQUIRE(session.run({"/bin/false"}).exitCode == 1);
        break;
      case 1:
        REQUIRE(session.run({"/nonexistent"}).exitCode == 127);
        break;
      case 2: {
        const Json process = sidecar.call("session.spawn", session.commandParams({"/bin/sleep", "60"})).at("process");
        sidecar.call("process.stop", {{"process", process}});
        break;
      }
      default:
        REQUIRE(session.run({"/bin/true"}).exitCode == 0);
    }
  }
  const ProcessCounters after = settledCounters(sidecar, before);
  CAPTURE(before.residentKib, after.residentKib);
  CHECK(after.descriptors == before.descriptors);
  CHECK(after.threads == before.threads);
  CHECK(after.zombies == 0);
  CHECK(countersOf(::getpid()).zombies == ours);
  CHECK(descendantsOf(sidecar.pid()).empty());
}

TEST_CASE("sessions made and deleted leave neither descriptors nor files") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  SidecarOptions options;
  options.startAs = startAs;
  options.arguments = {"--warm", "0"};
  Sidecar sidecar(std::move(options));
  const auto once = [&] {
    Session session(sidecar);
    session.sh("echo x > f");
    const std::string workspace = session.hostWorkspace();
    sidecar.call("handle.delete", {{"handle", session.handle()}});
    REQUIRE(::access(workspace.c_str(), F_OK) != 0);
  };
  once();
  const ProcessCounters before = countersOf(sidecar.pid());
  for (int i = 0; i < 50; ++i) {
    once();
  }
  const ProcessCounters after = settledCounters(sidecar, before);
  CHECK(after.descriptors == before.descriptors);
  CHECK(after.threads == before.threads);
  CHECK(after.zombies == 0);
}

TEST_CASE("results that nobody asks for take bounded memory, of the session that made most of it") {
  Sidecar sidecar(SidecarOptions{});
  Session modest(sidecar);
  Session greedy(sidecar);
  const auto spawn = [&](Session& session, const std::string& bytes) {
    // The file tells that it has written all, in whatever order the machine does things.
    const std::string done = session.hostWorkspace() + "/done";
    Json params = session.commandParams({"/bin/sh", "-c", "head -c " + bytes + " /dev/zero; : > done"});
    params["command"]["maxOutputBytes"] = 60000000;
    const Json process = sidecar.call("session.spawn", params).at("process");
    REQUIRE(eventually([&] { return ::access(done.c_str(), F_OK) == 0; }, Milliseconds(30000)));
    REQUIRE(::unlink(done.c_str()) == 0);
    return process;
  };
  const Json small = spawn(modest, "1000");
  const Json told = spawn(modest, "2000");
  CHECK(sidecar.call("process.result", {{"process", told}}).at("exitCode") == 0);
  std::vector<Json> large;
  for (int i = 0; i < 3; ++i) {
    large.push_back(spawn(greedy, "50000000"));
    REQUIRE(noGuestSoon("head -c 50000000"));
    REQUIRE(greedy.run({"/bin/true"}).exitCode == 0);  // by now the sidecar has seen the end as well
  }
  const Json refused = sidecar.callError("process.result", {{"process", large.front()}});
  CHECK(refused["code"] == -32006);
  CHECK(refused["data"]["reason"] == "results");
  CHECK(refused["data"]["details"]["exitCode"] == 0);
  CHECK(sidecar.call("process.result", {{"process", small}}).at("exitCode") == 0);
}

TEST_CASE("stdin that nobody reads is no error") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  SidecarOptions options;
  options.startAs = startAs;
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  Json params = session.commandParams({"/bin/true"});
  params["stdin"] = std::string(5U * 1024 * 1024, 'i');
  CHECK(sidecar.call("session.run", params).at("exitCode") == 0);
  // Half of it read; all of it read; and none given at all: the sidecar's own stdin is not there to be eaten.
  params = session.commandParams({"/usr/bin/head", "-c", "3"});
  params["stdin"] = std::string(5U * 1024 * 1024, 'i');
  CHECK(sidecar.call("session.run", params).at("stdout") == "iii");
  params = session.commandParams({"/usr/bin/wc", "-c"});
  params["stdin"] = std::string(5U * 1024 * 1024, 'i');
  CHECK(sidecar.call("session.run", params).at("stdout") == "5242880\n");
  CHECK(session.run({"/bin/cat"}).out == "");
}

}  // namespace
}  // namespace stitchkit::testing
