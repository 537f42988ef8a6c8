// What a session may take (security 50): memory, processes and processor time of all its commands together, by control
// groups that a guest is in from before its first instruction.
#include "tests/attacks/attempts.h"
#include "tests/support/cgroups.h"

#include <signal.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
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

TEST_CASE("memory that no process has: whatever ends for it, the result says so and keeps the output") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  const DelegatedGroups delegated;
  Sidecar sidecar(limitingOptions(startAs, delegated));
  Session session = Session::withResources(sidecar, {{"memoryBytes", 64 * kMiB}});
  // The second places itself behind the processes of its sandbox.
  for (const std::string first : {"", "echo 0 >/proc/self/oom_score_adj; "}) {
    CAPTURE(first);
    const auto outcome = session.sh(first + "echo hello; head -c 100M /dev/zero >/tmp/x; echo rest");
    CHECK(outcome.out == "hello\n");
    CHECK(outcome.exitCode == 137);
    CHECK(outcome.resource == "memory");
  }
  CHECK(session.sh("cat /proc/self/oom_score_adj /proc/1/oom_score_adj").out == "1000\n0\n");
  const Json stats = sidecar.call("backend.stats");
  CHECK(stats.at("commands").at("limited").at("memory") == 2);
  CHECK(stats.at("commands").at("ended").at("failed") == 0);
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

TEST_CASE("a ceiling of the machine's that is lower than a session's stays, and guests start") {
  SidecarOptions options;
  options.arguments = {"--cgroup", "none", "--user", userOfItsOwn()};
  options.hardLimits = {"--nproc=300", "--nofile=2000", "--fsize=10000000"};
  Sidecar sidecar(std::move(options));
  Session session = Session::withResources(sidecar, {{"maxOpenFiles", 2001}, {"maxFileBytes", 20000000}});
  CHECK(session.sh("ulimit -Hn; ulimit -Hp; ulimit -Hf").out == "2000\n300\n" + std::to_string(10000000 / 512) + "\n");
  Session lower = Session::withResources(sidecar, {{"maxOpenFiles", 100}, {"maxFileBytes", 1024}});
  CHECK(lower.sh("ulimit -Hn; ulimit -Hf").out == "100\n2\n");
}

TEST_CASE("control: outside of a sandbox the hogs get what they want") {
  const auto processes = runProgram({hostProgram("resource_hog"), "processes", "700"}, ordinaryUser());
  CHECK(numberOf(processes.output, "processes") == 700);
  CHECK(runProgram({hostProgram("resource_hog"), "memory", "200"}, ordinaryUser()).output == "memory=ok\n");
}

/// The group of the only session whose processor time has a ceiling.
std::string cpuGroupOf(const Sidecar& sidecar) {
  for (const std::string& group : sessionGroups(sidecar.pid())) {
    if (std::filesystem::exists(group + "/cpu.cfs_quota_us") || std::filesystem::exists(group + "/cpu.max")) {
      return group;
    }
  }
  throw std::runtime_error("no group with a ceiling of processor time");
}

/// Microseconds a period of 100,000.
std::string cpuQuotaOf(const Sidecar& sidecar) {
  const std::string group = cpuGroupOf(sidecar);
  const bool isNew = std::filesystem::exists(group + "/cpu.max");
  const std::string text = readFile(group + (isNew ? "/cpu.max" : "/cpu.cfs_quota_us"));
  return text.substr(0, text.find_first_of(" \n"));
}

TEST_CASE("processor time of a session has a ceiling") {
  const DelegatedGroups delegated;
  Sidecar sidecar(limitingOptions(StartAs::kRoot, delegated));
  Session session = Session::withResources(sidecar, {{"cpus", 0.3}});
  CHECK(cpuQuotaOf(sidecar) == "30000");
  const std::string hog = session.install("resource_hog");
  CHECK(session.run({hog, "cpu", "1"}).out == "cpu=ok\n");
  CHECK(cgroupCounter(readFile(cpuGroupOf(sidecar) + "/cpu.stat"), "nr_throttled") > 0);
}

TEST_CASE(
    "with hardly any processor time a command still ends soon after its deadline, and the ceiling is there again") {
  const DelegatedGroups delegated;
  Sidecar sidecar(limitingOptions(StartAs::kRoot, delegated));
  Session session = Session::withResources(sidecar, {{"cpus", 0.01}});
  Json params = session.commandParams(
      {"/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do while :; do :; done & done; wait"});
  params["command"]["timeoutMs"] = 1000;
  // At the ceiling's pace killed processes take up to seconds to end.
  constexpr int kTimes = 4;
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < kTimes; ++i) {
    CHECK(sidecar.callError("session.run", params).at("data").at("code") == "SANDBOX_LIMIT");
  }
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(kTimes + 2));
  CHECK(cpuQuotaOf(sidecar) == "1000");
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

TEST_CASE("a place for groups that there is not is a warning at the start") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  const auto warns = [&](const std::vector<std::string>& arguments) {
    SidecarOptions options;
    options.startAs = startAs;
    options.arguments = arguments;
    Sidecar sidecar(std::move(options));
    sidecar.closeInput();
    REQUIRE(sidecar.waitForExit());
    return sidecar.stderrText().find("warning: no-control-groups path=/nonexistent") != std::string::npos;
  };
  CHECK(warns({"--cgroup", "/nonexistent"}));
  CHECK_FALSE(warns({"--cgroup", "none"}));
  CHECK_FALSE(warns({}));
}

}  // namespace
}  // namespace stitchkit::testing
