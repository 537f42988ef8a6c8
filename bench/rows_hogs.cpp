// What a session that takes all it can get costs another one: its commands side by side with nothing else on the
// machine.
#include "bench/measure.h"
#include "bench/rows.h"

#include <nlohmann/json.hpp>

#include <stdexcept>
#include <thread>

namespace stitchkit::bench {

using nlohmann::json;

namespace {

constexpr double kMostTimes = 3;
constexpr std::chrono::milliseconds kBetween{10};

struct Hog {
  const char* what;
  const char* script;
  const char* resource;  // that its end names beside the deadline; "" for none
};

// Each goes on until its deadline, whatever its other limits end meanwhile.
constexpr Hog kHogs[] = {
    {"a fork loop", "bomb() { bomb & bomb & wait; }; while :; do bomb; done", "processes"},
    {"a 4 GiB memory hog", "while :; do ./resource_hog memory 4096; done", "memory"},
    {"dd to every writable tmpfs", "while :; do for f in /tmp/f /dev/shm/f; do dd if=/dev/zero of=$f bs=1M; done; done",
     ""},
    {"yes", "yes >/dev/null", ""},
};

/// A session with limits, and another one beside it.
class TwoSessions {
 public:
  explicit TwoSessions(const Setting& setting)
      : deadlineMs_(setting.effort.rounds >= 300 ? 30000 : 3000),
        sidecar_(setting.program, setting.home / "hogs-state", Transport::kPipes) {
    const json created = sidecar_.call(
        "backend.create",
        {{"template", {{"template", "hogs"}}},
         {"network", "deny-all"},
         {"resources", {{"memoryBytes", 256 << 20}, {"maxProcesses", 128}, {"cpus", 1}, {"tmpBytes", 64 << 20}}}});
    hog_ = created.at("handle");
    const auto workspace = workspaceOf(setting.home / "hogs-state", created.at("session").at("id"));
    std::filesystem::copy_file(setting.home / "resource_hog", workspace / "resource_hog");
    other_ =
        requestLine("session.run", {{"handle", openSession(sidecar_)}, {"command", {{"executable", "/usr/bin/true"}}}});
  }

  double run() {
    std::this_thread::sleep_for(kBetween);
    return timed([&] { sidecar_.exchange(other_); });
  }
  void start(const Hog& hog) {
    process_ = sidecar_.call("session.spawn", {{"handle", hog_},
                                               {"command",
                                                {{"executable", "/bin/bash"},
                                                 {"args", {"-c", std::string(hog.script) + " 2>/dev/null"}},
                                                 {"timeoutMs", deadlineMs_}}}});
  }
  /// Whether its limits have ended it.
  bool ended(const Hog& hog) {
    const json answer = sidecar_.answer("process.result", process_);
    const json data = answer.value("/error/data"_json_pointer, json::object());
    return data.value("reason", "") == "deadline" && data.value("/details/resource"_json_pointer, "") == hog.resource;
  }
  [[nodiscard]] int deadlineMs() const { return deadlineMs_; }
  void end() { sidecar_.end(); }

 private:
  int deadlineMs_;
  Sidecar sidecar_;
  std::string hog_, other_;
  json process_;
};

}  // namespace

std::vector<Row> hogRows(Setting& setting) {
  TwoSessions sessions(setting);
  const double idle = interleavedMedians(setting.effort.rounds, {[&] { return sessions.run(); }})[0];
  std::vector<Row> rows;
  for (const Hog& hog : kHogs) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(sessions.deadlineMs() * 9 / 10);
    sessions.start(hog);
    std::vector<double> beside;
    while (std::chrono::steady_clock::now() < end) {
      beside.push_back(sessions.run());
    }
    Row row = ratioRow(std::string("session.run beside ") + hog.what, median(beside), "idle", idle, kMostTimes);
    if (!sessions.ended(hog)) {
      row.figure += ", NOT ENDED BY ITS LIMITS";
      row.met = false;
    }
    rows.push_back(std::move(row));
  }
  sessions.end();
  return rows;
}

}  // namespace stitchkit::bench
