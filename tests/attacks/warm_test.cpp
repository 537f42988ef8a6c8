// Launches that wait for commands (backend/launch/warm_launches.h): a command that takes one finds what it would find
// in one of its own, and waiting changes nothing else.
#include "tests/attacks/attempts.h"
#include "tests/attacks/gateway_client.h"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <set>

#include "rpc/base/limits.h"

namespace stitchkit::testing {
namespace {

using Launches = std::vector<WaitingLaunch>;

constexpr std::size_t kPool = 4;

SidecarOptions warmOptions(StartAs startAs, std::size_t each = kPool, std::vector<std::string> more = {}) {
  SidecarOptions options;
  options.startAs = startAs;
  options.arguments = {"--warm", std::to_string(each)};
  options.arguments.insert(options.arguments.end(), more.begin(), more.end());
  return options;
}

/// Requests that the sidecar finds lying there all at once.
std::vector<std::int64_t> requestAtOnce(Sidecar& sidecar, const std::vector<Json>& params) {
  std::vector<std::int64_t> ids;
  for (const Json& one : params) {
    ids.push_back(sidecar.request("session.run", one));
  }
  return ids;
}

std::vector<std::string> runAtOnce(Sidecar& sidecar, Session& session, const std::string& script, std::size_t count) {
  const std::vector<Json> params(count, session.commandParams({"/bin/sh", "-c", script}));
  std::vector<std::string> outputs;
  for (const auto id : requestAtOnce(sidecar, params)) {
    const Json answer = sidecar.response(id);
    CAPTURE(answer.dump());
    REQUIRE(answer.contains("result"));
    REQUIRE(answer["result"]["exitCode"] == 0);
    outputs.push_back(answer["result"]["stdout"]);
  }
  return outputs;
}

/// Those that wait when `size` do and nothing else is under way.
Launches awaitWaiting(const Sidecar& sidecar, std::size_t size, Milliseconds within = Milliseconds(15000)) {
  Launches waiting;
  eventually(
      [&] {
        waiting = waitingLaunchesOf(sidecar.pid());
        return waiting.size() == size && commandsOf(sidecar.pid()).empty();
      },
      within);
  return waiting;
}

/// Commands in such numbers that the handle's pool grows to its most, which waits then. For sidecars with one handle.
Launches fill(Sidecar& sidecar, Session& session, std::size_t size = kPool, std::size_t others = 0) {
  Launches waiting;
  for (int tries = 0; tries < 5 && waiting.size() != size + others; ++tries) {
    runAtOnce(sidecar, session, ":", size + 3);
    waiting = awaitWaiting(sidecar, size + others, Milliseconds(5000));
  }
  REQUIRE(waiting.size() == size + others);
  return waiting;
}

/// As processes see it; no two that live have the same.
std::string namespaceOf(pid_t pid, const std::string& kind) {
  std::error_code failure;
  return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/ns/" + kind, failure).string();
}

std::set<std::string> namespacesOf(const Launches& launches) {
  std::set<std::string> all;
  for (const WaitingLaunch& launch : launches) {
    all.insert(namespaceOf(launch.helper, "pid"));
  }
  return all;
}

bool lives(const Sidecar& sidecar, pid_t pid) {
  const auto alive = descendantsOf(sidecar.pid());
  return std::find(alive.begin(), alive.end(), pid) != alive.end();
}

bool noneLivesSoon(const Launches& launches) {
  return eventually([&] {
    const auto alive = descendantsOf(::getpid());
    return std::none_of(launches.begin(), launches.end(), [&](const WaitingLaunch& launch) {
      return std::find(alive.begin(), alive.end(), launch.helper) != alive.end() ||
             std::find(alive.begin(), alive.end(), launch.init) != alive.end() ||
             std::find(alive.begin(), alive.end(), launch.bubblewrap) != alive.end();
    });
  });
}

/// While it lives the sidecar does nothing.
class Stopped {
 public:
  explicit Stopped(const Sidecar& sidecar) : sidecar_(sidecar) {
    sidecar_.kill(SIGSTOP);
    REQUIRE(eventually([&] { return statusLine(sidecar_.pid(), "State").starts_with("T"); }));
  }
  ~Stopped() { sidecar_.kill(SIGCONT); }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;

 private:
  const Sidecar& sidecar_;
};

TEST_CASE("a command is what a waiting launch becomes") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  Sidecar sidecar(warmOptions(startAs));
  Session session(sidecar);
  const Launches waiting = fill(sidecar, session);
  const std::string marker = "60.0" + uniqueDigits();
  const Json process = sidecar.call("session.spawn", session.commandParams({"/bin/sleep", marker})).at("process");
  REQUIRE(eventually([&] { return guestsAlive(marker).size() == 1; }));
  const pid_t command = guestsAlive(marker).front();
  CHECK(std::any_of(waiting.begin(), waiting.end(), [&](const auto& launch) { return launch.helper == command; }));
  // Another waits in its place, and the command is none of those that do.
  const Launches after = [&] {
    Launches seen;
    eventually([&] { return (seen = waitingLaunchesOf(sidecar.pid())).size() == kPool; });
    return seen;
  }();
  REQUIRE(after.size() == kPool);
  CHECK(std::none_of(after.begin(), after.end(), [&](const auto& launch) { return launch.helper == command; }));
  CHECK_FALSE(commandsOf(sidecar.pid()).empty());
  sidecar.call("process.stop", {{"process", process}});
  CHECK(noGuestSoon(marker));
}

TEST_CASE("control: a command that calls itself a launch that waits is not taken for one") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  Sidecar sidecar(warmOptions(startAs, 0));
  Session session(sidecar);
  session.sh("cp /bin/cat stitchkit-launch; mkfifo p");
  sidecar.call("session.spawn",
               session.commandParams({"/bin/bash", "-c", "exec -a /run/stitchkit-launch ./stitchkit-launch <>p"}));
  pid_t command = 0;
  REQUIRE(eventually([&] {
    for (const pid_t pid : descendantsOf(sidecar.pid())) {
      const std::string folder = "/proc/" + std::to_string(pid);
      if (readFile(folder + "/comm") == "stitchkit-launc\n" && statusLine(pid, "State").starts_with("S") &&
          readFile(folder + "/cmdline") == std::string("/run/stitchkit-launch") + '\0') {
        std::error_code failure;
        const auto program = std::filesystem::read_symlink(folder + "/exe", failure);
        command = program == "/workspace/stitchkit-launch" ? pid : command;
      }
    }
    return command != 0;
  }));
  CHECK(waitingLaunchesOf(sidecar.pid()).empty());
  CHECK(commandsOf(sidecar.pid()).size() == 3);
}

// The namespace that a command prints is one that waited before it, which all live until their command.
void checkTraces(const std::string& output, const std::set<std::string>& waited) {
  CAPTURE(output);
  const Attempts attempts = attemptsOf(output);
  CHECK(waited.count(attempts.at("namespace")) == 1);
  for (const auto& [name, outcome] : attempts) {
    const bool made = name.starts_with("leave-");
    CAPTURE(name);
    CHECK((name == "namespace" || (outcome == "ok") == made));
  }
  CHECK(attempts.size() == 17);
}

TEST_CASE("what a command leaves is not there for one that takes a launch that waited meanwhile") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  Sidecar sidecar(warmOptions(startAs));
  Session session(sidecar);
  const std::string program = session.install("traces");
  const std::string script = program + " look; echo namespace=$(readlink /proc/self/ns/pid); " + program + " leave";
  fill(sidecar, session);
  for (int i = 0; i < 30; ++i) {
    const Launches waiting = awaitWaiting(sidecar, kPool);
    REQUIRE(waiting.size() == kPool);
    const std::set<std::string> waited = namespacesOf(waiting);
    checkTraces(session.sh(script).out, waited);
  }
  for (int i = 0; i < 5; ++i) {
    const Launches waiting = awaitWaiting(sidecar, kPool);
    REQUIRE(waiting.size() == kPool);
    const std::set<std::string> waited = namespacesOf(waiting);
    for (const std::string& output : runAtOnce(sidecar, session, script, kPool)) {
      checkTraces(output, waited);
    }
  }
}

TEST_CASE("control: two processes of one command find all that the other leaves") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  Sidecar sidecar(warmOptions(startAs));
  Session session(sidecar);
  const std::string program = session.install("traces");
  const std::string output = session.sh(program + " leave; " + program + " look").out;
  CAPTURE(output);
  CHECK(attemptsOf(output).size() == 16);
  CHECK(succeeded(attemptsOf(output)).size() == 16);
}

TEST_CASE("launches that are killed while they wait: the next commands run as ever, each once") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  const std::string victim = GENERATE("bubblewrap", "init", "helper", "all");
  const bool seen = GENERATE(true, false);
  const std::size_t count = GENERATE(std::size_t{1}, kPool);
  CAPTURE(startAs, victim, seen, count);
  Sidecar sidecar(warmOptions(startAs));
  Session session(sidecar);
  const Launches waiting = fill(sidecar, session);
  std::vector<pid_t> victims;
  // The oldest is the next that is taken.
  for (std::size_t i = 0; i < count; ++i) {
    for (const pid_t pid : waiting[i].processes()) {
      if (victim == "all" || pid == (victim == "bubblewrap" ? waiting[i].bubblewrap
                                     : victim == "init"     ? waiting[i].init
                                                            : waiting[i].helper)) {
        victims.push_back(pid);
      }
    }
  }
  std::vector<Json> commands;
  std::string expected;
  for (int i = 0; i < 6; ++i) {
    commands.push_back(session.commandParams({"/bin/sh", "-c", "echo once >> log; echo ran"}));
    expected += "once\n";
  }
  std::vector<std::int64_t> ids;
  {
    std::optional<Stopped> stopped;
    if (!seen) {
      stopped.emplace(sidecar);
    }
    for (const pid_t pid : victims) {
      REQUIRE((::kill(pid, SIGKILL) == 0 || errno == ESRCH));  // one may have died with another
    }
    REQUIRE(eventually(
        [&] { return std::none_of(victims.begin(), victims.end(), [&](pid_t pid) { return lives(sidecar, pid); }); }));
    if (seen) {
      // Others wait in their place.
      REQUIRE(eventually([&] {
        const Launches now = waitingLaunchesOf(sidecar.pid());
        return now.size() == kPool && std::none_of(now.begin(), now.end(), [&](const auto& launch) {
                 return std::find(victims.begin(), victims.end(), launch.helper) != victims.end() ||
                        std::find(victims.begin(), victims.end(), launch.init) != victims.end() ||
                        std::find(victims.begin(), victims.end(), launch.bubblewrap) != victims.end();
               });
      }));
    }
    ids = requestAtOnce(sidecar, commands);
  }
  for (const auto id : ids) {
    const Json answer = sidecar.response(id);
    CAPTURE(answer.dump());
    REQUIRE(answer.contains("result"));
    CHECK(answer["result"]["exitCode"] == 0);
    CHECK(answer["result"]["stdout"] == "ran\n");
  }
  CHECK(readFile(session.hostWorkspace() + "/log") == expected);
  CHECK(awaitWaiting(sidecar, kPool).size() == kPool);
  CHECK(countersOf(sidecar.pid()).zombies == 0);
}

TEST_CASE("a launch that is killed before it has taken its command: nothing has run, and that is told") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  Sidecar sidecar(warmOptions(startAs, kPool));
  Session session(sidecar);
  const Launches waiting = fill(sidecar, session);
  for (const auto& launch : waiting) {
    REQUIRE(::kill(launch.helper, SIGSTOP) == 0);
  }
  const auto id = sidecar.request("session.run", session.commandParams({"/bin/sh", "-c", "echo once >> log"}));
  REQUIRE(eventually([&] { return sidecar.call("backend.stats").at("commands").at("live") == 1; }));
  for (const auto& launch : waiting) {
    REQUIRE(::kill(launch.helper, SIGKILL) == 0);
  }
  const Json answer = sidecar.response(id);
  CAPTURE(answer.dump());
  CHECK(answer.value("/error/data/code"_json_pointer, "") == "SANDBOX_UNAVAILABLE");
  CHECK(answer.value("/error/data/reason"_json_pointer, "") == "sandbox-killed");
  CHECK_FALSE(std::filesystem::exists(session.hostWorkspace() + "/log"));
  CHECK(session.sh("echo on").out == "on\n");
}

// Of the network that a command has: whether it is this process's, and what the gateway says.
std::string networkIn(const std::string& program, const std::string& host) {
  return "readlink /proc/self/ns/net; " + program + " get " + host + " / 1 2>/dev/null || true";
}

TEST_CASE("no command runs under a policy that was changed, however many launches waited under it") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  const Upstream upstream;
  Sidecar sidecar(warmOptions(startAs, kPool, {"--private-origins"}));
  Session session(sidecar);
  const std::string program = session.install("gateway_peer");
  const std::string script = networkIn(program, upstream.host());
  const std::string ours = namespaceOf(::getpid(), "net") + "\n";
  const Json list = allowOnly(upstream);
  const auto check = [&](const Json& policy, const std::string& output) {
    CAPTURE(policy.dump(), output);
    CHECK((output.rfind(ours, 0) == 0) == (policy == "allow-all"));
    CHECK((output.find("status=200") != std::string::npos) == policy.is_object());
  };
  for (const std::string& output : runAtOnce(sidecar, session, script, 2)) {
    check("deny-all", output);
  }
  for (const Json& policy : std::vector<Json>{"allow-all", "deny-all", list, "allow-all", list, "deny-all"}) {
    const Launches before = fill(sidecar, session);
    sidecar.call("session.setNetworkPolicy", {{"handle", session.handle()}, {"network", policy}});
    for (const std::string& output : runAtOnce(sidecar, session, script, 6)) {
      check(policy, output);
    }
    CHECK(noneLivesSoon(before));
  }
}

TEST_CASE("a policy change that fails leaves commands and launches that wait as they were") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  Sidecar sidecar(warmOptions(startAs));
  Session session(sidecar);
  fill(sidecar, session);
  const std::string workspace = session.hostWorkspace();
  std::filesystem::rename(workspace, workspace + ".moved");
  const Json error =
      sidecar.callError("session.setNetworkPolicy", {{"handle", session.handle()}, {"network", "allow-all"}});
  CAPTURE(error.dump());
  std::filesystem::rename(workspace + ".moved", workspace);
  for (const std::string& output : runAtOnce(sidecar, session, "readlink /proc/self/ns/net; echo ran >> log", 3)) {
    CHECK(output != namespaceOf(::getpid(), "net") + "\n");
  }
  CHECK(readFile(workspace + "/log") == "ran\nran\nran\n");
  fill(sidecar, session);
}

TEST_CASE("a stop and a delete end the launches that wait, and the session is free at once") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  const std::string end = GENERATE("handle.stop", "handle.delete");
  CAPTURE(startAs, end);
  Sidecar sidecar(warmOptions(startAs));
  Session session(sidecar);
  Session other(sidecar);
  const Launches others = awaitWaiting(sidecar, 2);
  REQUIRE(others.size() == 2);
  const Launches waiting = fill(sidecar, session, kPool, 1);
  const std::string workspace = session.hostWorkspace();
  const std::string marker = "60.0" + uniqueDigits();
  sidecar.call("session.spawn", session.commandParams({"/bin/sleep", marker}));
  sidecar.call(end, {{"handle", session.handle()}});
  CHECK(guestsAlive(marker).empty());
  if (end == "handle.delete") {
    CHECK_FALSE(std::filesystem::exists(std::filesystem::path(workspace).parent_path()));
  } else {
    SidecarOptions options = warmOptions(startAs);
    options.state = sidecar.state();
    session.stop();  // and again
    Sidecar second(options);
    CHECK(Session(second, "deny-all", session.state()).sh("echo mine").out == "mine\n");
  }
  // Of those that waited, the other session's is left.
  const Launches left = awaitWaiting(sidecar, 1);
  REQUIRE(left.size() == 1);
  CHECK(std::count(others.begin(), others.end(), left.front()) == 1);
  CHECK(commandsOf(sidecar.pid()).empty());
  CHECK(other.sh("echo still").out == "still\n");
}

TEST_CASE("a launch that has waited longer than its warden lived is not used: a guest could outlive the sidecar") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  Sidecar sidecar(warmOptions(startAs));
  Session session(sidecar);
  const std::string program = session.install("pid1_takeover");
  const Launches waiting = fill(sidecar, session);
  const std::vector<pid_t> wardens = wardensOf(sidecar.pid());
  REQUIRE(wardens.size() == 1);
  REQUIRE(::kill(wardens.front(), SIGKILL) == 0);
  REQUIRE(eventually([&] { return wardensOf(sidecar.pid()).empty(); }));
  const std::string marker = "m" + uniqueDigits();
  Json params = session.commandParams({program, marker});
  params["stream"] = true;
  sidecar.call("session.spawn", params);
  REQUIRE(sidecar.outputBytes().starts_with("takeover="));
  const std::vector<pid_t> guests = guestsAlive(marker);
  REQUIRE(guests.size() == 1);
  CHECK(std::none_of(waiting.begin(), waiting.end(),
                     [&](const WaitingLaunch& launch) { return launch.helper == guests.front(); }));
  sidecar.kill(SIGKILL);
  REQUIRE(sidecar.waitForExit());
  CHECK(noGuestSoon(marker, Milliseconds(15000)));
  CHECK(noneLivesSoon(waiting));
  killAll(marker);
}

TEST_CASE("launches that wait do not outlive the sidecar") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  const std::string end = GENERATE("SIGKILL", "SIGTERM", "end of input", "host's death");
  CAPTURE(startAs, end);
  SidecarOptions options = warmOptions(startAs);
  options.state = std::make_shared<StateDirectory>(startAs);
  Sidecar sidecar(options);
  std::vector<Session> sessions;
  for (std::size_t i = 0; i < 3; ++i) {
    sessions.emplace_back(sidecar);
    fill(sidecar, sessions.back(), kPool, i * kPool);
  }
  const Launches waiting = waitingLaunchesOf(sidecar.pid());
  REQUIRE(waiting.size() == 3 * kPool);
  if (end == "SIGKILL" || end == "SIGTERM") {
    sidecar.kill(end == "SIGKILL" ? SIGKILL : SIGTERM);
  } else {
    sidecar.closeInput();
    if (end == "host's death") {
      sidecar.closeOutput();
    }
  }
  REQUIRE(sidecar.waitForExit());
  CHECK(noneLivesSoon(waiting));
  CHECK(onlyDescendants({}));
  Sidecar second(options);
  CHECK(Session(second, "deny-all", sessions.front().state()).sh("echo mine").out == "mine\n");
}

TEST_CASE("a handle that nobody uses has no launches after a while, until somebody does", "[idle]") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  const auto descriptorsAfter = [](Sidecar& sidecar, Session& session) {
    runAtOnce(sidecar, session, ":", 8);
    // Until its pool has been left alone for long enough; with margin.
    const Milliseconds within(2 * limits::kWarmIdleMs + 15000);
    REQUIRE(eventually([&] { return descendantsOf(sidecar.pid()).empty(); }, within));
    return countersOf(sidecar.pid()).descriptors;
  };
  Sidecar cold(warmOptions(startAs, 0));
  Session plain(cold);
  const long wanted = descriptorsAfter(cold, plain);
  Sidecar sidecar(warmOptions(startAs));
  Session session(sidecar);
  fill(sidecar, session);
  CHECK(countersOf(sidecar.pid()).descriptors > wanted);
  long now = descriptorsAfter(sidecar, session);
  eventually([&] { return (now = countersOf(sidecar.pid()).descriptors) <= wanted; });
  CHECK(now == wanted);
  CHECK(countersOf(sidecar.pid()).zombies == 0);
  CHECK(session.sh("echo back").out == "back\n");
  CHECK(awaitWaiting(sidecar, 1).size() == 1);
  fill(sidecar, session);
}

TEST_CASE("many commands and sessions later a sidecar is as it would be had no launch ever waited") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  const auto use = [](Sidecar& sidecar) {
    for (int i = 0; i < 25; ++i) {
      Session session(sidecar);
      for (const std::size_t count : {8, 1, 4}) {
        runAtOnce(sidecar, session, ":", count);
      }
      CHECK(session.run({"/nonexistent"}).exitCode == 127);
      const Json process = sidecar.call("session.spawn", session.commandParams({"/bin/sleep", "60"})).at("process");
      sidecar.call("process.stop", {{"process", process}});
      sidecar.call(i % 2 == 0 ? "handle.delete" : "handle.stop", {{"handle", session.handle()}});
    }
  };
  Sidecar cold(warmOptions(startAs, 0));
  Sidecar warm(warmOptions(startAs));
  use(cold);
  use(warm);
  CHECK(eventually([&] { return descendantsOf(cold.pid()).empty() && descendantsOf(warm.pid()).empty(); }));
  CHECK(eventually([&] { return countersOf(warm.pid()).descriptors == countersOf(cold.pid()).descriptors; }));
  CHECK(countersOf(warm.pid()).threads == countersOf(cold.pid()).threads);
  CHECK(countersOf(warm.pid()).zombies == 0);
}

TEST_CASE("no more launches wait for a handle than it may have") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  const std::size_t each = GENERATE(0, 1, 2, 7);
  CAPTURE(startAs, each);
  Sidecar sidecar(warmOptions(startAs, each));
  Session session(sidecar);
  for (int round = 0; round < 10; ++round) {
    runAtOnce(sidecar, session, ":", 8);
    std::size_t most = 0;
    const auto none = [&] {
      most = std::max(most, waitingLaunchesOf(sidecar.pid()).size());
      return most == each && commandsOf(sidecar.pid()).empty();
    };
    CHECK(eventually(none));
    CHECK(most == each);
  }
  CHECK(session.sh("echo hi").out == "hi\n");
}

TEST_CASE("no more launches wait in all than there may be, and every handle's commands run") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  Sidecar sidecar(warmOptions(startAs));
  std::vector<Session> sessions;
  std::size_t most = 0;
  const auto look = [&] { return most = std::max(most, waitingLaunchesOf(sidecar.pid()).size()); };
  for (std::size_t i = 0; i < limits::kWarmLaunches + 16; ++i) {
    sessions.emplace_back(sidecar);
  }
  // A pool that had to wait too long may have been left alone for too long.
  for (int tries = 0; tries < 5 && most < limits::kWarmLaunches; ++tries) {
    std::vector<Json> params;
    for (const Session& session : sessions) {
      params.push_back(session.commandParams({"/bin/echo", "hi"}));
    }
    for (const auto id : requestAtOnce(sidecar, params)) {
      CHECK(sidecar.response(id, Milliseconds(60000)).at("/result/stdout"_json_pointer) == "hi\n");
    }
    eventually([&] { return look() >= limits::kWarmLaunches && commandsOf(sidecar.pid()).empty(); },
               Milliseconds(10000));
  }
  CHECK(most == limits::kWarmLaunches);
  // The room that a handle leaves goes to others.
  for (std::size_t i = 0; i < 16; ++i) {
    sidecar.call("handle.delete", {{"handle", sessions[i].handle()}});
  }
  CHECK(sessions.back().sh("echo hi").out == "hi\n");
  CHECK(eventually([&] { return look() > limits::kWarmLaunches || commandsOf(sidecar.pid()).empty(); }));
  CHECK(most == limits::kWarmLaunches);
}

TEST_CASE("launches that wait are no live commands") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  Sidecar sidecar(warmOptions(startAs, kPool, {"--max-concurrent-commands", "1"}));
  Session session(sidecar);
  for (int i = 0; i < 10; ++i) {
    REQUIRE(eventually([&] { return !waitingLaunchesOf(sidecar.pid()).empty(); }));
    CHECK(session.sh("echo one").out == "one\n");
  }
  for (const char* policy : {"allow-all", "deny-all"}) {
    REQUIRE(eventually([&] { return !waitingLaunchesOf(sidecar.pid()).empty(); }));
    sidecar.call("session.setNetworkPolicy", {{"handle", session.handle()}, {"network", policy}});
  }
  const std::string marker = "60.0" + uniqueDigits();
  const Json process = sidecar.call("session.spawn", session.commandParams({"/bin/sleep", marker})).at("process");
  CHECK(sidecar.callError("session.run", session.commandParams({"/bin/true"})).at("/data/code"_json_pointer) ==
        "SANDBOX_BUSY");
  sidecar.call("process.stop", {{"process", process}});
}

struct Case {
  std::string name;
  std::vector<std::string> argv;
  Json command = Json::object();  ///< further members
  std::string standardInput = {};
};

std::vector<Case> casesOf(const std::string& program) {
  const auto shell = [](std::string script) { return std::vector<std::string>{"/bin/sh", "-c", std::move(script)}; };
  std::vector<std::string> many(20000, "argument");
  many.insert(many.begin(), {"/bin/sh", "-c", "echo $#"});
  return {{"stdin", {"/usr/bin/wc", "-c"}, {}, std::string(300000, 'i')},
          {"no stdin", shell("cat; readlink /proc/self/fd/0")},
          {"descriptors", shell(program + " | sed 's/:\\[[0-9]*]//'")},
          {"limits", {"/bin/cat", "/proc/self/limits"}},
          {"file size", shell("head -c 9000000 /dev/zero > big; echo $?; stat -c %s big; rm -f big")},
          {"soft and hard", shell("ulimit -Sn; ulimit -Hn; ulimit -f; umask")},
          {"environment", {"/usr/bin/env"}, {{"environment", {{"B", "2"}, {"A", "1 'x'"}}}}},
          {"large environment", shell("printenv BIG | wc -c"), {{"environment", {{"BIG", std::string(100000, 'e')}}}}},
          {"signals", {"/bin/grep", "-E", "^(Sig[BIC]|Cap|NoNewPrivs|Seccomp|Uid|Gid|Groups)", "/proc/self/status"}},
          {"scheduling", shell("sed -n 's/^policy *: *//p; s/^prio *: *//p' /proc/self/sched; cut -d' ' -f18,19,41 "
                               "/proc/self/stat; cat /proc/self/oom_score_adj /proc/self/autogroup | sed s/-[0-9]*//")},
          {"directory", shell("pwd"), {{"cwd", "sub/directory"}}},
          {"outside", shell("pwd"), {{"cwd", "/tmp"}}},
          {"no directory", shell("pwd"), {{"cwd", "/workspace/nonexistent"}}},
          {"a file as directory", shell("pwd"), {{"cwd", "file"}}},
          {"missing", {"/nonexistent", "x"}},
          {"missing by name", {"no-such-program"}},
          {"a directory", {"/workspace"}},
          {"not executable", {"/etc/passwd"}},
          {"by name", {"true"}},
          {"exit code", shell("exit 77")},
          {"signal", shell("kill -SEGV $$")},
          {"both streams", shell("echo out; echo err >&2")},
          {"timeout", {"/bin/sleep", "50"}, {{"timeoutMs", 300}}},
          {"output budget", {"/usr/bin/yes"}, {{"maxOutputBytes", 10000}}},
          {"output at the budget", {"/usr/bin/head", "-c", "10000", "/dev/zero"}, {{"maxOutputBytes", 10000}}},
          {"large argument", {"/bin/sh", "-c", "echo ${#1}", "sh", std::string(100000, 'a')}},
          {"many arguments", many},
          {"too large an argument", {"/bin/true", std::string(200000, 'a')}},
          {"mounts", shell("cut -d' ' -f 5,6 /proc/self/mountinfo; df -B1 --output=size /tmp /dev/shm")},
          {"processes", shell("set -- /proc/[0-9]*; echo $#; cat /proc/1/comm; echo $$ $PPID; cat /proc/1/cmdline")},
          {"session", shell("cut -d' ' -f 4-8 /proc/self/stat")},
          {"identity", shell("id; hostname; cat /proc/self/uid_map /proc/self/cgroup; ls -A /tmp /dev/shm")}};
}

// Durations and numbers of namespaces are not among them.
Json answerTo(Sidecar& sidecar, const Session& session, const Case& one) {
  Json params = session.commandParams(one.argv, one.command);
  if (!one.standardInput.empty()) {
    params["stdin"] = one.standardInput;
  }
  Json answer = sidecar.response(sidecar.request("session.run", std::move(params)));
  answer.erase("id");
  answer.value("result", Json::object()).erase("durationMs");
  return answer;
}

TEST_CASE("a command's answer is the same whether or not its launch has waited") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  Sidecar cold(warmOptions(startAs, 0));
  Session plain(cold);
  Sidecar warm(warmOptions(startAs));
  Session session(warm);
  std::string program;
  for (Session* one : {&plain, &session}) {
    program = one->install("descriptors");
    one->sh("mkdir -p sub/directory; : > file");
  }
  fill(warm, session);
  for (const Case& one : casesOf(program)) {
    CAPTURE(one.name);
    REQUIRE(awaitWaiting(warm, kPool).size() == kPool);
    const Json expected = answerTo(cold, plain, one);
    const Json answer = answerTo(warm, session, one);
    CHECK(answer == expected);
    CHECK(waitingLaunchesOf(cold.pid()).empty());
  }
}

/// What a sidecar answers to commands one after another and four at once, when it may open no more than `few` files.
/// Commands of another session came first.
std::vector<Json> answersWithFew(StartAs startAs, std::size_t each, std::uint64_t few) {
  SidecarOptions options = warmOptions(startAs, each);
  options.hardLimits = {"--nofile=" + std::to_string(few)};
  Sidecar sidecar(options);
  Session other(sidecar);
  Session session(sidecar);
  std::vector<Json> answers;
  for (int round = 0; round < 8; ++round) {
    const Session& used = round < 3 ? other : session;
    const std::vector<Json> params(round % 2 == 0 ? 4 : 1, used.commandParams({"/bin/echo", "hi"}));
    for (const auto id : requestAtOnce(sidecar, params)) {
      answers.push_back(sidecar.response(id));
      answers.back().erase("id");
    }
    // Whatever waits from now on does so already.
    eventually([&] { return commandsOf(sidecar.pid()).empty(); });
  }
  return answers;
}

TEST_CASE("launches that wait never take the descriptors that a command needs") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  const auto worked = [](const Json& answer) { return answer.value("/result/stdout"_json_pointer, "") == "hi\n"; };
  // The fewest with which a sidecar without them works.
  std::uint64_t few = 64;
  const auto enough = [&] {
    try {
      const std::vector<Json> answers = answersWithFew(startAs, 0, few);
      return std::all_of(answers.begin(), answers.end(), worked);
    } catch (const RpcError&) {
      return false;  // not even a session
    }
  };
  while (!enough()) {
    few += 4;
    REQUIRE(few < limits::kOpenFilesBesideWarm);
  }
  for (const std::uint64_t more : {0, 4, 8, 16, 32, 64, 128, 256}) {
    CAPTURE(few, more);
    for (const Json& answer : answersWithFew(startAs, kPool, few + more)) {
      CAPTURE(answer.dump());
      CHECK(worked(answer));
    }
  }
}

TEST_CASE("as many launches wait as there are descriptors for") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  const std::size_t room = GENERATE(0, 1, 3);
  CAPTURE(startAs, room);
  SidecarOptions options = warmOptions(startAs);
  options.hardLimits = {"--nofile=" +
                        std::to_string(limits::kOpenFilesBesideWarm + room * limits::kOpenFilesOfWarmLaunch)};
  Sidecar sidecar(options);
  Session session(sidecar);
  fill(sidecar, session, room);
  Session other(sidecar);
  CHECK(other.sh("echo cold").out == "cold\n");
  CHECK(awaitWaiting(sidecar, room).size() == room);
}

std::string shown(pid_t pid, const char* file) {
  std::string text = readFile("/proc/" + std::to_string(pid) + "/" + file);
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

TEST_CASE("a waiting launch shows no more than bubblewrap's own arguments") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  Sidecar sidecar(warmOptions(startAs));
  Session session(
      sidecar,
      {{"allow", {{{"origin", "http://example.invalid"}, {"headers", {{"authorization", "secret-of-the-policy"}}}}}}});
  session.run({"/bin/echo", "argument-of-a-command"}, {{"environment", {{"NAME", "value-of-a-command"}}}});
  const Launches waiting = fill(sidecar, session);

  Sidecar cold(warmOptions(startAs, 0));
  Session plain(cold);
  const std::string marker = "60.0" + uniqueDigits();
  cold.call("session.spawn", plain.commandParams({"/bin/sleep", marker}));
  REQUIRE(eventually([&] { return guestsAlive(marker).size() == 1; }));
  std::set<std::string> expected{"/run/stitchkit-launch "};
  for (const pid_t pid : descendantsOf(cold.pid())) {
    if (shown(pid, "cmdline").find(marker) == std::string::npos) {
      expected.insert(shown(pid, "cmdline"));
    }
  }
  REQUIRE(expected.size() == 2);  // that of bwrap and its init, and the helper's
  for (const WaitingLaunch& launch : waiting) {
    for (const pid_t pid : launch.processes()) {
      CAPTURE(pid);
      CHECK(expected.count(shown(pid, "cmdline")) == 1);
      CHECK(shown(pid, "environ") == (pid == launch.helper ? "PWD=/ " : ""));  // that is bwrap's doing
      CHECK(shown(pid, "cmdline").find(sidecar.state()->path()) == std::string::npos);
    }
  }
}

}  // namespace
}  // namespace stitchkit::testing
