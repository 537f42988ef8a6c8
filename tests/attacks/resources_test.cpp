// What a session may take (security 50): memory, processes and processor time of all its commands together, by control
// groups that a guest is in from before its first instruction.
#include "tests/attacks/attempts.h"
#include "tests/support/cgroups.h"

#include <signal.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>

#include "backend/cgroups/cgroup_files.h"

namespace stitchkit::testing {
namespace {

constexpr std::int64_t kMiB = 1024 * 1024;

std::int64_t numberOf(const std::string& output, const std::string& name) {
  const auto attempts = attemptsOf(output);
  const auto found = attempts.find(name);
  return found == attempts.end() ? -1 : std::stoll(found->second);
}

std::vector<Json> resultsAtOnce(Sidecar& sidecar, const Session& session, const std::vector<std::string>& argv,
                                int count) {
  std::vector<std::int64_t> ids;
  for (int i = 0; i < count; ++i) {
    ids.push_back(sidecar.request("session.run", session.commandParams(argv)));
  }
  std::vector<Json> results;
  for (const auto id : ids) {
    const Json answer = sidecar.response(id);
    CAPTURE(answer.dump());
    REQUIRE(answer.contains("result"));
    results.push_back(answer["result"]);
  }
  return results;
}

TEST_CASE("a command over its session's memory ends, is told of it, and disturbs nobody") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  const DelegatedGroups delegated;
  Sidecar sidecar(limitingOptions(startAs, delegated));
  Session limited = Session::withResources(sidecar, {{"memoryBytes", 64 * kMiB}});
  Session other(sidecar);
  const std::string hog = limited.install("resource_hog");
  const auto over = limited.run({hog, "memory", "200"});
  CHECK(over.exitCode == 137);
  CHECK(over.resource == "memory");
  // A process below the program that the command started, and a program that fails for another reason.
  const auto below = limited.sh(hog + " memory 200; exit 3");
  CHECK(below.exitCode == 3);
  CHECK(below.resource == "memory");
  CHECK(limited.sh("exit 3").resource.empty());
  // Files in the sandbox's memory count, and are gone with the command.
  CHECK(limited.sh("dd if=/dev/zero of=/tmp/f bs=1M count=200").resource == "memory");
  CHECK(limited.run({hog, "memory", "20"}).out == "memory=ok\n");
  other.install("resource_hog");
  CHECK(other.run({hog, "memory", "200"}).out == "memory=ok\n");
  // Whoever watches sees it, too.
  const Json stats = sidecar.call("backend.stats");
  CHECK(stats.at("commands").at("limited") == Json{{"memory", 3}, {"processes", 0}});
  REQUIRE(stats.at("handles").size() == 2);
  CHECK(stats.at("handles")[0].at("memoryKills") >= 3);
  CHECK(stats.at("handles")[0].at("memoryBytes") <= 64 * kMiB);
  CHECK(stats.at("handles")[1].at("memoryKills") == 0);
  CHECK_FALSE(stats.at("handles")[1].contains("memoryBytes"));
  sidecar.closeInput();
  REQUIRE(sidecar.waitForExit());
  CHECK(sidecar.stderrText().find(" resource=memory") != std::string::npos);
}

TEST_CASE("memory is counted for all commands of a session together") {
  const DelegatedGroups delegated;
  Sidecar sidecar(limitingOptions(StartAs::kRoot, delegated));
  Session session = Session::withResources(sidecar, {{"memoryBytes", 96 * kMiB}});
  const std::string hog = session.install("resource_hog");
  const std::vector<std::string> waits{"/bin/sh", "-c", "dd if=/dev/zero of=/tmp/f bs=1M count=40 2>&1; read x <p"};
  session.sh("mkfifo p");
  // Each would fit.
  CHECK(session.run({hog, "memory", "40"}).exitCode == 0);
  const Json first = sidecar.call("session.spawn", session.commandParams(waits)).at("process");
  const Json second = sidecar.call("session.spawn", session.commandParams(waits)).at("process");
  const auto third = session.run({hog, "memory", "40"});
  CHECK(third.resource == "memory");
  sidecar.call("process.stop", {{"process", first}});
  sidecar.call("process.stop", {{"process", second}});
}

TEST_CASE("a session has as many processes as it may, whoever waits beside them") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  const DelegatedGroups delegated;
  Sidecar sidecar(limitingOptions(startAs, delegated));
  constexpr std::int64_t kMost = 20;
  Session session = Session::withResources(sidecar, {{"maxProcesses", kMost}});
  const std::string hog = session.install("resource_hog");
  for (int i = 0; i < 4; ++i) {
    const auto outcome = session.run({hog, "processes", "100"});
    CAPTURE(outcome.out);
    CHECK(numberOf(outcome.out, "processes") == kMost - 1);  // and itself
    CHECK(attemptsOf(outcome.out).at("error") == "EAGAIN");
    CHECK(outcome.resource == "processes");
  }
  // Two at once have no more between them.
  const std::vector<Json> both = resultsAtOnce(sidecar, session, {hog, "processes", "100"}, 2);
  CHECK(numberOf(both[0].at("stdout"), "processes") < kMost);
  CHECK(numberOf(both[1].at("stdout"), "processes") < kMost);
  Session other = Session::withResources(sidecar, {{"maxProcesses", 200}});
  other.install("resource_hog");
  CHECK(numberOf(other.run({hog, "processes", "100"}).out, "processes") == 100);
}

TEST_CASE("a fork loop does not keep other commands of its session from starting") {
  const DelegatedGroups delegated;
  Sidecar sidecar(limitingOptions(StartAs::kRoot, delegated));
  Session session = Session::withResources(sidecar, {{"maxProcesses", 30}});
  session.install("fork_loop");
  const Json loop =
      sidecar.call("session.spawn", session.commandParams({"/workspace/fork_loop", "1000"})).at("process");
  for (int i = 0; i < 12; ++i) {
    // The program begins; it may fork no more than the loop leaves room for.
    CHECK(session.run({"/bin/echo", "here"}).out == "here\n");
  }
  sidecar.call("process.stop", {{"process", loop}});
}

TEST_CASE("without a word about it a session has 512 processes, by a control group or by rlimit") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  const bool groups = GENERATE(true, false);
  CAPTURE(startAs, groups);
  const DelegatedGroups delegated;
  SidecarOptions options = limitingOptions(startAs, delegated);
  if (!groups) {
    options.arguments = {"--cgroup", "none"};
  }
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  const std::string hog = session.install("resource_hog");
  const auto outcome = session.run({hog, "processes", "2000"});
  CHECK(numberOf(outcome.out, "processes") == 511);
}

TEST_CASE("control: outside of a sandbox the hogs get what they want") {
  const auto processes = runProgram({hostProgram("resource_hog"), "processes", "700"}, ordinaryUser());
  CHECK(numberOf(processes.output, "processes") == 700);
  CHECK(runProgram({hostProgram("resource_hog"), "memory", "200"}, ordinaryUser()).output == "memory=ok\n");
}

TEST_CASE("processor time of a session has a ceiling") {
  const DelegatedGroups delegated;
  Sidecar sidecar(limitingOptions(StartAs::kRoot, delegated));
  Session session = Session::withResources(sidecar, {{"cpus", 0.3}});
  const auto groups = sessionGroups(sidecar.pid());
  const auto group = std::find_if(groups.begin(), groups.end(), [](const std::string& path) {
    return std::filesystem::exists(path + "/cpu.cfs_quota_us") || std::filesystem::exists(path + "/cpu.max");
  });
  REQUIRE(group != groups.end());
  if (std::filesystem::exists(*group + "/cpu.max")) {
    CHECK(readFile(*group + "/cpu.max") == "30000 100000\n");
  } else {
    CHECK(readFile(*group + "/cpu.cfs_quota_us") == "30000\n");
  }
  const std::string hog = session.install("resource_hog");
  const auto throttled = [&] { return cgroupCounter(readFile(*group + "/cpu.stat"), "nr_throttled"); };
  CHECK(session.run({hog, "cpu", "1"}).out == "cpu=ok\n");
  CHECK(throttled() > 0);
}

TEST_CASE("every process of a launch is in the session's groups, and shows none of them") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  const DelegatedGroups delegated;
  Sidecar sidecar(limitingOptions(startAs, delegated));
  Session session = Session::withResources(sidecar, {{"memoryBytes", 256 * kMiB}, {"maxProcesses", 50}, {"cpus", 2}});
  REQUIRE(sessionGroups(sidecar.pid()).size() == 3);
  const std::string marker = "60.0" + uniqueDigits();
  sidecar.call("session.spawn", session.commandParams({"/bin/sh", "-c", "sleep " + marker + " & wait"}));
  REQUIRE(eventually([&] { return guestsAlive(marker).size() >= 2; }));
  const auto processes = descendantsOf(sidecar.pid());
  CHECK(processes.size() >= 4);  // bwrap, its init, sh, sleep
  for (const pid_t pid : processes) {
    for (const char* controller : {"memory", "pids", "cpu"}) {
      const std::string group = groupOf(pid, controller);
      const auto groups = sessionGroups(sidecar.pid());
      CAPTURE(pid, controller, group);
      CHECK(std::any_of(groups.begin(), groups.end(),
                        [&](const std::string& one) { return group == one || group.starts_with(one + "/"); }));
    }
  }
  CHECK(session.sh("cat /proc/self/cgroup /proc/1/cgroup | grep -c stitchkit").out == "0\n");
  CHECK(session.sh("find / -name cgroup.procs -o -name tasks -path '*cgroup*' 2>/dev/null | grep -v ^/proc").out == "");
  CHECK(session.sh("ls /sys/fs/cgroup").exitCode != 0);
  CHECK(killAll(marker));
}

TEST_CASE("groups go with their handle, whether it stops, is deleted, or never came to be") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  const DelegatedGroups delegated;
  Sidecar sidecar(limitingOptions(startAs, delegated));
  const auto gone = [&] { return eventually([&] { return sessionGroups(sidecar.pid()).empty(); }); };
  Session session = Session::withResources(sidecar, {{"memoryBytes", 256 * kMiB}, {"cpus", 2}});
  CHECK(sessionGroups(sidecar.pid()).size() == 3);
  session.sh("true");
  session.stop();
  CHECK(gone());
  Session again(sidecar, "deny-all", session.state());
  CHECK(sessionGroups(sidecar.pid()).size() == 1);
  sidecar.call("handle.delete", {{"handle", again.handle()}});
  CHECK(gone());
  // Too little for anything to start.
  const Json failed = sidecar.callError(
      "backend.create",
      {{"template", {{"template", "empty"}}}, {"network", "deny-all"}, {"resources", {{"memoryBytes", 4096}}}});
  CAPTURE(failed.dump());
  CHECK(failed.at("data").at("details").at("resource") == "memory");
  CHECK(gone());
  sidecar.closeInput();
  REQUIRE(sidecar.waitForExit().has_value());
  CHECK(sidecarGroups(sidecar.pid()).empty());
}

TEST_CASE("groups of a killed sidecar are removed by its warden, and without one by the next sidecar") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  const bool wardenToo = GENERATE(false, true);
  CAPTURE(startAs, wardenToo);
  const DelegatedGroups delegated;
  SidecarOptions options = limitingOptions(startAs, delegated);
  options.state = std::make_shared<StateDirectory>(startAs);
  const std::string marker = "60.0" + uniqueDigits();
  Sidecar killed(options);
  Session session = Session::withResources(killed, {{"memoryBytes", 256 * kMiB}, {"cpus", 2}});
  killed.call("session.spawn", session.commandParams({"/bin/sleep", marker}));
  REQUIRE(sessionGroups(killed.pid()).size() == 3);
  if (wardenToo) {
    killed.kill(SIGSTOP);
    for (const pid_t warden : wardensOf(killed.pid())) {
      ::kill(warden, SIGKILL);
    }
  }
  killed.kill(SIGKILL);
  REQUIRE(killed.waitForExit().has_value());
  if (wardenToo) {
    CHECK(noGuestSoon(marker));
    CHECK(sidecarGroups(killed.pid()).size() == 3);
    Sidecar next(options);
    Session attached(next, "deny-all", session.state());
    CHECK(attached.sh("true").exitCode == 0);
  }
  CHECK(eventually([&] { return sidecarGroups(killed.pid()).empty(); }));
  CHECK(noGuestSoon(marker));
}

TEST_CASE("what cannot be enforced is refused by its name") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  SidecarOptions options;
  options.startAs = startAs;
  options.arguments = {"--cgroup", "none"};
  Sidecar sidecar(std::move(options));
  for (const auto& [resources, name] :
       std::vector<std::pair<Json, std::string>>{{{{"memoryBytes", 256 * kMiB}}, "memoryBytes"},
                                                 {{{"maxProcesses", 50}}, "maxProcesses"},
                                                 {{{"cpus", 1.5}, {"tmpBytes", kMiB}}, "cpus"}}) {
    const Json error = sidecar.callError(
        "backend.create", {{"template", {{"template", "empty"}}}, {"network", "deny-all"}, {"resources", resources}});
    CAPTURE(error.dump());
    CHECK(error.at("data").at("code") == "SANDBOX_UNAVAILABLE");
    CHECK(error.at("data").at("details").at("resource") == name);
    CHECK_FALSE(error.at("data").at("hint").get<std::string>().empty());
  }
}

}  // namespace
}  // namespace stitchkit::testing
