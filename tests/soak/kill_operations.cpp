// What else a machine does: processes that are killed from outside.
#include <signal.h>

#include <stdexcept>

#include "tests/soak/operations.h"
#include "tests/support/processes.h"

namespace stitchkit::soak {
namespace {

/// A spawned command that sleeps, and the machine's number of it.
struct Victim {
  Json process;
  pid_t pid = 0;
};

Victim spawnVictim(Rig& rig, const Room& room) {
  const std::string marker = rig.marker() + "1";
  Victim victim;
  victim.process =
      rig.sidecar()
          .call("session.spawn", room.session->commandParams({"/bin/sleep", marker}, {{"timeoutMs", 600000}}))
          .at("process");
  const bool came = testing::eventually([&] {
    const std::vector<pid_t> alive = testing::guestsAlive(marker);
    victim.pid = alive.empty() ? 0 : alive.front();
    return !alive.empty();
  });
  if (!came) {
    throw std::runtime_error("a spawned command is not there");
  }
  return victim;
}

pid_t parentOf(pid_t pid) {
  const std::string parent = testing::statusLine(pid, "PPid");
  return parent.empty() ? 0 : std::stoi(parent);
}

}  // namespace

bool killGuest(Rig& rig, Room& room) {
  const Victim victim = spawnVictim(rig, room);
  ::kill(victim.pid, SIGKILL);
  const Json result = rig.sidecar().call("process.result", {{"process", victim.process}});
  if (result.at("exitCode") != 128 + SIGKILL) {
    wrong("killed, but not 137", result);
  }
  rig.soak().did("SIGKILL of a guest");
  return true;
}

// No exit code is known then, and none is invented.
bool killBubblewrap(Rig& rig, Room& room) {
  const Victim victim = spawnVictim(rig, room);
  const pid_t bubblewrap = parentOf(parentOf(victim.pid));
  if (bubblewrap <= 1 || parentOf(bubblewrap) != rig.sidecar().pid()) {
    throw std::runtime_error("no bwrap above a guest");
  }
  ::kill(bubblewrap, SIGKILL);
  const Json error = rig.sidecar().callError("process.result", {{"process", victim.process}});
  if (error.at("data").at("code") != "SANDBOX_UNAVAILABLE") {
    wrong("bwrap was killed", error);
  }
  if (!testing::noGuestSoon(rig.marker() + "1")) {
    throw std::runtime_error("a guest has outlived its bwrap");
  }
  rig.soak().did("SIGKILL of bwrap");
  return true;
}

// The one launch that is dying may be taken for a command in that moment, which then is told that nothing has run, or
// dies with it.
void requireRunOrTold(Rig& rig, Room& room, int& told) {
  const Json answer =
      rig.sidecar().response(rig.sidecar().request("session.run", room.session->commandParams({"/bin/echo", "on"})));
  if ((answer.value("/error/data/code"_json_pointer, "") == "SANDBOX_UNAVAILABLE" &&
       answer.contains("/error/data/reason"_json_pointer)) ||
      answer.value("/result/exitCode"_json_pointer, 0) == 128 + SIGKILL) {
    ++told;
    return;
  }
  if (answer.value("/result/stdout"_json_pointer, "") != "on\n") {
    wrong("after the kill of a launch that waited", answer);
  }
}

bool killWaiting(Rig& rig, Room& room) {
  const std::vector<testing::WaitingLaunch> waiting = testing::waitingLaunchesOf(rig.sidecar().pid());
  if (waiting.empty()) {
    return fillCommands(rig, room);
  }
  const std::vector<pid_t> processes = waiting[rig.dice().below(waiting.size())].processes();
  ::kill(processes[rig.dice().below(processes.size())], SIGKILL);
  int told = 0;
  for (Room& other : rig.rooms()) {
    requireRunOrTold(rig, other, told);
  }
  if (told > 1) {
    throw std::runtime_error("after the kill of one launch that waited: two commands did not run");
  }
  rig.soak().did("SIGKILL of a waiting launch");
  return true;
}

bool killWarden(Rig& rig, Room& room) {
  for (const pid_t warden : testing::wardensOf(rig.sidecar().pid())) {
    ::kill(warden, SIGKILL);
  }
  if (room.session->sh("echo on").out != "on\n") {
    throw std::runtime_error("after the kill of the warden: no command runs");
  }
  rig.soak().did("SIGKILL of the warden");
  return true;
}

}  // namespace stitchkit::soak
