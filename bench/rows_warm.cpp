// Rows about commands that find a launch ready (backend/launch/warm_launches.h): what they cost against Bubblewrap
// started by hand and against the program with no sandbox at all, and what the launches that wait cost while nobody
// wants them.
#include "bench/measure.h"
#include "bench/process_facts.h"
#include "bench/rows.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace stitchkit::bench {

using nlohmann::json;

namespace {

constexpr std::chrono::milliseconds kApart{10};
// All launches of a pool are ready by then, and what was ended is gone.
constexpr std::chrono::milliseconds kSettled{50};
constexpr std::chrono::seconds kIdle{5};
constexpr int kInARow = 50;
constexpr int kTogether = 8;
// The default of --warm, and the processes of each: bwrap, its init, the helper.
constexpr std::size_t kFullPool = 4;
constexpr std::size_t kProcessesEach = 3;

const std::vector<std::string> kProgram{"/usr/bin/true"};

Measurement after(std::chrono::milliseconds pause, std::function<void()> action) {
  return [pause, action = std::move(action)] {
    std::this_thread::sleep_for(pause);
    return timed(action);
  };
}

/// A sidecar as it comes, with one session and a toolset.
class WarmSidecar {
 public:
  explicit WarmSidecar(const Setting& setting)
      : sidecar_(setting.program, setting.home / "warm-state", Transport::kPipes), session_(openSession(sidecar_)) {
    const json made = sidecar_.call(
        "coding.create", {{"handle", session_}, {"authorize", "allow"}, {"executables", {{"true", kProgram[0]}}}});
    run_ = runLine(1);
    tool_ = requestLine("coding.run_command", {{"toolset", made.at("toolset")}, {"input", {{"executable", "true"}}}});
  }

  [[nodiscard]] pid_t pid() const noexcept { return sidecar_.pid(); }
  void run() { sidecar_.exchange(run_); }
  void runByTool() { sidecar_.exchange(tool_); }
  /// To the last answer.
  void runTogether(int commands) {
    std::string lines;
    for (int id = 1; id <= commands; ++id) {
      lines += runLine(id);
    }
    sidecar_.channel().send(lines);
    for (int i = 0; i < commands; ++i) {
      expectResult(sidecar_.channel().receive());
    }
  }
  void end() { sidecar_.end(); }

 private:
  [[nodiscard]] std::string runLine(int id) const {
    return requestLine("session.run", {{"handle", session_}, {"command", {{"executable", kProgram[0]}}}}, id);
  }

  Sidecar sidecar_;
  std::string session_, run_, tool_;
};

void addOneByOne(Setting& setting, WarmSidecar& warm, std::vector<Row>* rows) {
  const auto times = interleaved(setting.effort.rounds * 3, {after(kApart, [&] { warm.run(); }),
                                                             after(kApart, [&] { setting.direct.run(kProgram); }),
                                                             after(kApart, [&] { runBare(kProgram); })});
  const double ours = median(times[0]);
  rows->push_back(ratioRow("session.run /usr/bin/true, warm", ours, "bwrap directly", median(times[1]), 0.45));
  rows->push_back(ratioRow("the same", ours, "the program alone", median(times[2]), 2.2));
  const double slow = quantile(times[0], 0.99);
  rows->push_back(ratioRow("the same, 99th percentile", slow, "the median", ours, 4));
}

Row toolRow(Setting& setting, WarmSidecar& warm) {
  const auto medians = interleavedMedians(
      setting.effort.rounds * 3, {after(kApart, [&] { warm.runByTool(); }), after(kApart, [&] { warm.run(); })});
  return ratioRow("coding.run_command, warm", medians[0], "session.run", medians[1], 1.15);
}

Row inARowRow(Setting& setting, WarmSidecar& warm) {
  const auto many = [](const std::function<void()>& action) {
    return [action] {
      std::this_thread::sleep_for(kSettled);
      return timed([&] {
               for (int i = 0; i < kInARow; ++i) {
                 action();
               }
             }) /
             kInARow;
    };
  };
  const auto medians = interleavedMedians(std::max(5, setting.effort.rounds / 10),
                                          {many([&] { warm.run(); }), many([&] { setting.direct.run(kProgram); })});
  return ratioRow("session.run, " + std::to_string(kInARow) + " back to back, each", medians[0], "bwrap directly",
                  medians[1], 0.8);
}

Row togetherRow(Setting& setting, WarmSidecar& warm) {
  const auto medians = interleavedMedians(setting.effort.rounds,
                                          {after(kSettled, [&] { warm.runTogether(kTogether); }),
                                           after(kSettled, [&] { setting.direct.runTogether(kProgram, kTogether); })});
  return ratioRow("session.run, " + std::to_string(kTogether) + " at once, to the last end", medians[0],
                  "bwrap directly", medians[1], 1.0);
}

/// All processes of the launches that wait, once there are as many as may be. Nothing tells when that is so.
std::vector<pid_t> fullPool(WarmSidecar& warm) {
  warm.runTogether(kTogether);
  std::vector<pid_t> waiting;
  for (int tries = 0; tries < 500; ++tries) {
    waiting = descendantsOf(warm.pid());
    std::erase_if(waiting, [](pid_t pid) { return nameOf(pid) == "sandbox-warden"; });
    const auto helpers =
        std::count_if(waiting.begin(), waiting.end(), [](pid_t pid) { return nameOf(pid) != "bwrap"; });
    if (waiting.size() == kFullPool * kProcessesEach && helpers == kFullPool) {
      return waiting;
    }
    std::this_thread::sleep_for(kApart);
  }
  throw std::runtime_error("the pool is not full: " + std::to_string(waiting.size()) + " processes wait");
}

void addIdle(WarmSidecar& warm, std::vector<Row>* rows) {
  std::vector<pid_t> waiting = fullPool(warm);
  std::int64_t bytes = 0;
  for (const pid_t pid : waiting) {
    bytes += proportionalBytes(pid);
  }
  const double mebibytes = static_cast<double>(bytes) / 1048576;
  const double each = mebibytes / kFullPool;
  rows->push_back(
      {"memory of one launch that waits (PSS)", formatNumber(each, 2, "MiB"), "", "", "<= 1 MiB", each <= 1, ""});

  const std::size_t processes = waiting.size();
  waiting.push_back(warm.pid());
  const auto sleeps = [&] {
    std::int64_t sum = 0;
    for (const pid_t pid : waiting) {
      sum += sleepsOf(pid);
    }
    return sum;
  };
  const std::int64_t before = sleeps();
  std::this_thread::sleep_for(kIdle);
  const std::int64_t wakeUps = sleeps() - before;
  rows->push_back({"an idle handle whose " + std::to_string(kFullPool) + " launches wait",
                   formatNumber(mebibytes, 2, "MiB"), "",
                   std::to_string(processes) + " processes, " + std::to_string(wakeUps) + " wake-ups in " +
                       std::to_string(kIdle.count()) + " s",
                   "", std::nullopt, ""});
}

}  // namespace

std::vector<Row> warmRows(Setting& setting) {
  std::vector<Row> rows{runRow(setting)};
  WarmSidecar warm(setting);
  addOneByOne(setting, warm, &rows);
  rows.push_back(limitsRow(setting));
  rows.push_back(toolRow(setting, warm));
  rows.push_back(inARowRow(setting, warm));
  rows.push_back(togetherRow(setting, warm));
  addIdle(warm, &rows);
  warm.end();
  return rows;
}

}  // namespace stitchkit::bench
