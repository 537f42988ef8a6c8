// ./dev soak: a mixed load for a set time, then what is held is compared with what was held before.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <random>
#include <thread>

#include "tests/soak/facts.h"
#include "tests/soak/operations.h"
#include "tests/soak/rig.h"
#include "tests/soak/verdict.h"
#include "tests/support/host_checks.h"
#include "tests/support/processes.h"
#include "tests/support/spawn.h"

namespace stitchkit::soak {
namespace {

using Clock = std::chrono::steady_clock;
using testing::Milliseconds;

constexpr const char* kUsage =
    "Usage: sandbox-soak [SECONDS] [--seed NUMBER] [--leak handle|memory|file|process]...\n"
    "A mixed load on three sidecars for so long (1800), then before against after. 0: all clean, 1: not.\n"
    "--leak makes a leak of that kind, to show that it is found.\n";

struct Arguments {
  std::uint64_t seconds = 1800;
  std::uint64_t seed = std::random_device{}();
  std::set<std::string> leaks;
};

std::uint64_t number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::invalid_argument("not a number: " + text);
  }
  return value;
}

Arguments argumentsOf(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool named = words[i] == "--seed" || words[i] == "--leak";
    if (named && i + 1 == words.size()) {
      throw std::invalid_argument(words[i] + " needs a value");
    }
    if (words[i] == "--seed") {
      arguments.seed = number(words[++i]);
    } else if (words[i] == "--leak") {
      const std::string& kind = words[++i];
      if (kind != "handle" && kind != "memory" && kind != "file" && kind != "process") {
        throw std::invalid_argument("no such leak: " + kind);
      }
      arguments.leaks.insert(kind);
    } else {
      arguments.seconds = number(words[i]);
    }
  }
  return arguments;
}

/// Does `step` until then. What it throws goes into the report, and the rig begins anew.
void work(Soak& soak, Rig& rig, const std::string& name, Clock::time_point until, const std::function<void()>& step) {
  while (Clock::now() < until) {
    try {
      step();
    } catch (const std::exception& fault) {
      soak.failed(name + ": " + fault.what());
      rig.restart();
    }
  }
}

/// The sidecar that lives from the beginning to the end, in segments with a rest after each.
class LongRun {
 public:
  LongRun(Soak& soak, const Arguments& arguments)
      : soak_(soak),
        leaks_(arguments.leaks),
        rig_(soak, arguments.seed, {testing::startModes().front(), {}, kVeterans + 4}),
        segments_(std::clamp<std::int64_t>(static_cast<std::int64_t>(arguments.seconds) / 5, 4, 60)),
        segment_(static_cast<std::int64_t>(arguments.seconds) * 1000 / segments_) {}

  void run(Clock::time_point until) {
    work(until - segment_ * (segments_ - 1));
    askAtOnce(rig_, rig_.rooms().front(), 8);  // a pool of threads keeps as many as were ever needed at once
    rig_.close();
    const SidecarFacts closedBefore = settle({});
    std::vector<long> heap;
    SidecarFacts restBefore;
    SidecarFacts restAfter;
    for (std::int64_t segment = 1; segment < segments_; ++segment) {
      work(std::max(Clock::now() + segment_ / 4, until - segment_ * (segments_ - 1 - segment)));
      leak();
      rig_.close(kVeterans);
      restAfter = settle(restBefore);
      restBefore = segment == 1 ? restAfter : restBefore;
      heap.push_back(restAfter.anonymousKib);
      tell(segment, restAfter);
    }
    rig_.close();
    const SidecarFacts closedAfter = settle(closedBefore);
    rows_ = compare("no session", closedBefore, closedAfter);
    const std::vector<Row> rest = compare("two sessions", restBefore, restAfter);
    rows_.insert(rows_.end(), rest.begin(), rest.end());
    rows_.push_back(memoryRow(heap));
    rig_.end();
  }

  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }

 private:
  static constexpr std::size_t kVeterans = 2;  // sessions that are not closed in between
  // Longer than a gateway keeps connections, and shorter than a launch waits for commands.
  static constexpr Milliseconds kSettle{8000};

  void work(Clock::time_point until) {
    rig_.open();
    soak::work(soak_, rig_, "the sidecar that lives on", until, [&] {
      rig_.round();
      if (leaks_.count("memory") != 0) {
        const testing::Session& session = *rig_.rooms().front().session;
        rig_.sidecar().call("session.spawn", session.commandParams({"/usr/bin/head", "-c", "200000", "/dev/zero"}));
      }
    });
  }

  void leak() {
    if (leaks_.count("handle") != 0) {
      const testing::Session forgotten(rig_.sidecar());
    }
  }

  /// At rest, when no more can be expected to go: an answer may come before the last of its clean-up, connections to
  /// upstreams end after some seconds, and freed memory is given back when it has been quiet for a second.
  SidecarFacts settle(const SidecarFacts& wanted) {
    const pid_t pid = rig_.sidecar().pid();
    if (leaks_.empty()) {
      rig_.rest();
    }
    SidecarFacts facts = factsOf(pid);
    long lowest = facts.anonymousKib;
    auto since = Clock::now();
    const auto settled = [&] {
      facts = factsOf(pid);
      if (facts.anonymousKib < lowest || Clock::now() == since) {
        lowest = facts.anonymousKib;
        since = Clock::now();
      }
      const bool quiet = Clock::now() - since > Milliseconds(1500);
      return quiet && (wanted.threads == 0 || clean(compare("", wanted, facts)));
    };
    testing::eventually(settled, leaks_.empty() ? kSettle : Milliseconds(300));
    return facts;
  }

  void tell(std::int64_t segment, const SidecarFacts& facts) {
    const auto minute = std::chrono::duration_cast<std::chrono::minutes>(segment_ * (segment + 1)).count();
    if (minute == toldMinute_ && segment + 1 < segments_) {
      return;
    }
    toldMinute_ = minute;
    std::cout << std::chrono::duration_cast<std::chrono::seconds>(segment_ * (segment + 1)).count()
              << " s: " << soak_.total() << " operations, " << soak_.failures().size() << " failures; at rest "
              << facts.allDescriptors() << " descriptors, " << facts.threads << " threads, " << facts.children
              << " children, " << facts.zombies << " zombies, " << facts.anonymousKib << " KiB heap, "
              << facts.residentKib << " KiB resident, " << facts.sharedOutKib << " KiB PSS" << std::endl;
  }

  Soak& soak_;
  std::set<std::string> leaks_;
  Rig rig_;
  std::int64_t segments_;
  Milliseconds segment_;
  long toldMinute_ = 0;
  std::vector<Row> rows_;
};

/// One that is killed again and again, and carries on.
void mortalRun(Soak& soak, std::uint64_t seed, std::vector<std::string> arguments, Clock::time_point until) {
  Rig rig(soak, seed, {testing::startModes().back(), std::move(arguments), 3});
  rig.open();
  work(soak, rig, "a sidecar that is killed", until, [&] {
    if (rig.dice().oneIn(12)) {
      rig.killed();
    } else {
      rig.round();
    }
  });
  rig.killed();
  rig.close();
  rig.end();
}

/// Each in a thread of its own; what they throw goes into the report.
void runBeside(Soak& soak, const std::vector<std::function<void()>>& runs) {
  std::atomic<std::size_t> left = runs.size();
  std::vector<std::thread> threads;
  for (const std::function<void()>& run : runs) {
    threads.emplace_back([&soak, &left, &run] {
      try {
        run();
      } catch (const std::exception& fault) {
        soak.failed(fault.what());
      }
      --left;
    });
  }
  // Thousands of zombies would make each look at /proc slow.
  while (left != 0) {
    soak.reapOrphans();
    std::this_thread::sleep_for(Milliseconds(100));
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

/// Makes what stays in a state directory: templates, and what guests see of the machine.
void prepare(const Soak& soak) {
  Rig rig(soak, 0, {testing::startModes().front(), {}, 1});
  rig.open();
  prewarmFiles(rig, rig.rooms().front());
  rig.close();
  rig.end();
}

void leakFiles(const Soak& soak, std::vector<std::string>& made) {
  for (const auto& entry : std::filesystem::directory_iterator(soak.state->path())) {
    if (std::filesystem::exists(entry.path() / "staging")) {
      made.push_back(entry.path() / "staging" / "left");
    }
  }
  made.push_back("/tmp/stitchkit-left-" + std::to_string(::getpid()));
  for (const std::string& path : made) {
    std::ofstream(path) << "left\n";
  }
}

/// Below this process, as an orphan of a sidecar would be.
void leakProcess() {
  testing::SpawnOptions options;
  options.argv = {"/bin/sh", "-c", "sleep 3600.0" + std::to_string(::getpid()) + " & :"};
  testing::waitForChild(testing::spawnProgram(options), Milliseconds(15000));
}

/// Whatever goes away by itself gets the time for it.
std::vector<Row> settledMachine(const std::string& state, const MachineFacts& before) {
  std::vector<Row> rows;
  testing::eventually([&] {
    testing::reapOrphans({});
    rows = compare(before, machineFacts(state));
    return clean(rows);
  });
  return rows;
}

std::vector<Row> soakFor(Soak& soak, const Arguments& arguments) {
  prepare(soak);
  const MachineFacts before = machineFacts(soak.state->path());
  const auto until = Clock::now() + std::chrono::seconds(arguments.seconds);
  LongRun lives(soak, arguments);
  runBeside(soak, {[&] { lives.run(until); }, [&] { mortalRun(soak, arguments.seed + 1, {}, until); },
                   [&] {
                     mortalRun(soak, arguments.seed + 2, {"--warm", "0"}, until);
                   }});
  std::vector<std::string> made;
  if (arguments.leaks.count("file") != 0) {
    leakFiles(soak, made);
  }
  if (arguments.leaks.count("process") != 0) {
    leakProcess();
  }
  std::vector<Row> rows = lives.rows();
  for (Row& row : settledMachine(soak.state->path(), before)) {
    rows.push_back(std::move(row));
  }
  for (const std::string& path : made) {
    ::unlink(path.c_str());
  }
  testing::killAll("3600.0" + std::to_string(::getpid()));
  return rows;
}

int soakAndTell(const Arguments& arguments) {
  Soak soak(arguments.seed);
  std::cout << arguments.seconds << " s of load, --seed " << arguments.seed << std::endl;
  const std::vector<Row> rows = soakFor(soak, arguments);
  const std::vector<std::string> failures = soak.failures();
  std::cout << "\n" << soak.total() << " operations: " << soak.counts() << "\n\n" << tableText(rows);
  for (const std::string& failure : failures) {
    std::cout << "FAILED: " << failure << "\n";
  }
  const bool good = failures.empty() && clean(rows);
  std::cout << "\n" << (good ? "clean" : "NOT clean") << std::endl;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace stitchkit::soak

int main(int argc, char** argv) {
  using namespace stitchkit;
  ::signal(SIGPIPE, SIG_IGN);
  testing::becomeSubreaper();
  try {
    const soak::Arguments arguments = soak::argumentsOf({argv + 1, argv + argc});
    const std::string problem = testing::isolationProblem();
    if (!problem.empty()) {
      throw std::runtime_error("this machine cannot isolate guests. " + problem);
    }
    return soak::soakAndTell(arguments);
  } catch (const std::invalid_argument& fault) {
    std::cerr << fault.what() << "\n" << soak::kUsage;
    return 2;
  } catch (const std::exception& fault) {
    std::cerr << "FAILED: " << fault.what() << "\n";
    return 1;
  }
}
