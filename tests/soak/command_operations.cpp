#include <algorithm>
#include <stdexcept>

#include "rpc/base/base64.h"
#include "tests/soak/operations.h"

namespace stitchkit::soak {
namespace {

// Fewer than a handle may have, so that those of doMeanwhile() find room.
constexpr int kMostAtOnce = 5;

bool isFull(const Room& room) {
  return room.commands >= kMostAtOnce;
}

std::string linesUpTo(std::size_t last) {
  std::string lines;
  for (std::size_t line = 1; line <= last; ++line) {
    lines += std::to_string(line) + "\n";
  }
  return lines;
}

void requireOutcome(const Json& answer, int exitCode, std::string_view standardOutput) {
  const Json& result = resultOf(answer);
  if (result.at("exitCode") != exitCode || result.at("stdout") != standardOutput) {
    wrong("not exit code " + std::to_string(exitCode) + " and '" + std::string(standardOutput.substr(0, 100)) + "'",
          answer);
  }
}

}  // namespace

bool runShell(Rig& rig, Room& room) {
  if (isFull(room)) {
    return false;
  }
  const int exitCode = static_cast<int>(rig.dice().below(126));
  const std::string input = rig.dice().text(rig.dice().oneIn(6) ? 300'000 : rig.dice().below(1000));
  Json params = room.session->commandParams(
      {"/bin/sh", "-c", "cat; (sleep " + rig.marker() + " &) ; exit $0", std::to_string(exitCode)});
  params["stdin"] = input;
  rig.beginCommand(room, "run", "session.run", std::move(params),
                   [exitCode, input](const Json& answer) { requireOutcome(answer, exitCode, input); });
  return true;
}

bool runMissing(Rig& rig, Room& room) {
  if (isFull(room)) {
    return false;
  }
  const bool there = rig.dice().oneIn(2);
  rig.beginCommand(room, "run nothing", "session.run",
                   room.session->commandParams({there ? "/etc/passwd" : "/nonexistent"}),
                   [there](const Json& answer) { requireOutcome(answer, there ? 126 : 127, ""); });
  return true;
}

bool runWriter(Rig& rig, Room& room) {
  const std::string path = isFull(room) ? "" : claim(rig, room, false);
  if (path.empty()) {
    return false;
  }
  const std::string text = rig.dice().text(rig.dice().below(100'000));
  // It counts: where the sidecar is killed in the middle, its input ends there, shortly before it is killed itself.
  constexpr const char* kWrite = "mkdir -p ${0%/*} && cat > $0.new && [ $(wc -c < $0.new) = $1 ] && mv $0.new $0";
  Json params = room.session->commandParams(
      {"/bin/sh", "-c", kWrite, path, std::to_string(std::max<std::size_t>(text.size(), 1))});
  params["stdin"] = text.empty() ? "x" : text;
  room.claimed[path].push_back(params["stdin"].get<std::string>());
  rig.beginCommand(room, "run a writer", "session.run", params,
                   [&room, path, text = params["stdin"].get<std::string>()](const Json& answer) {
                     requireOutcome(answer, 0, "");
                     room.files[path] = text;
                   });
  return true;
}

bool runDeadline(Rig& rig, Room& room) {
  if (isFull(room)) {
    return false;
  }
  rig.beginCommand(room, "deadline", "session.run",
                   room.session->commandParams({"/bin/sh", "-c", "trap '' TERM; sleep " + rig.marker()},
                                               {{"timeoutMs", 1 + rig.dice().below(200)}}),
                   [](const Json& answer) { requireError(answer, "SANDBOX_LIMIT", "deadline"); });
  return true;
}

bool runFlood(Rig& rig, Room& room) {
  if (isFull(room)) {
    return false;
  }
  rig.beginCommand(room, "output budget", "session.run",
                   room.session->commandParams({"/usr/bin/yes"}, {{"maxOutputBytes", 1 + rig.dice().below(200'000)}}),
                   [](const Json& answer) { requireError(answer, "SANDBOX_LIMIT", "output-budget"); });
  return true;
}

bool runCancelled(Rig& rig, Room& room) {
  if (isFull(room)) {
    return false;
  }
  rig.beginCommand(room, "cancel", "session.run",
                   room.session->commandParams({"/bin/sleep", rig.marker()}, {{"timeoutMs", 600000}}),
                   [](const Json& answer) {
                     if (answer.value("/error/code"_json_pointer, 0) != -32800) {
                       wrong("not cancelled", answer);
                     }
                   });
  rig.sidecar().cancel(rig.lastRequest());
  return true;
}

bool streamLines(Rig& rig, Room& room) {
  const std::size_t last = 1 + rig.dice().below(20'000);
  Json params = room.session->commandParams({"/bin/sh", "-c", "seq 1 $0; exit 3", std::to_string(last)});
  params["stream"] = true;
  const Json process = rig.sidecar().call("session.spawn", params).at("process");
  const std::string expected = linesUpTo(last);
  std::string came;
  while (came.size() < expected.size()) {
    const std::string bytes = rig.sidecar().outputBytes();
    if (bytes.empty()) {
      throw std::runtime_error("stream: no output in time");
    }
    came += bytes;
  }
  const Json end = rig.sidecar().notification("process.exit").at("params");
  const Json result = rig.sidecar().call("process.result", {{"process", process}});
  if (came != expected || end.at("process") != process || end.at("exitCode") != 3 || result.at("exitCode") != 3) {
    wrong("stream: not the lines up to " + std::to_string(last), end);
  }
  rig.soak().did("stream");
  return true;
}

bool spawnAndStop(Rig& rig, Room& room) {
  const Json process =
      rig.sidecar()
          .call("session.spawn", room.session->commandParams({"/bin/sleep", rig.marker()}, {{"timeoutMs", 600000}}))
          .at("process");
  rig.sidecar().call("process.stop", {{"process", process}});
  const Json result = rig.sidecar().call("process.result", {{"process", process}});
  if (result.at("exitCode") != 137) {
    wrong("stopped, but not 137", result);
  }
  rig.soak().did("spawn and stop");
  return true;
}

bool fillCommands(Rig& rig, Room& room) {
  constexpr int kMost = 8;
  const Json params = room.session->commandParams({"/bin/sleep", rig.marker()}, {{"timeoutMs", 600000}});
  std::vector<Json> processes;
  for (int i = 0; i < kMost; ++i) {
    processes.push_back(rig.sidecar().call("session.spawn", params).at("process"));
  }
  if (rig.sidecar().callError("session.run", params).at("data").at("code") != "SANDBOX_BUSY") {
    throw std::runtime_error("a ninth command is not refused as busy");
  }
  for (const Json& process : processes) {
    rig.sidecar().call("process.stop", {{"process", process}});
  }
  rig.soak().did("as many as may be");
  return true;
}

}  // namespace stitchkit::soak
