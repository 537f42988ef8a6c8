// What the filter of system calls and a session's limits add to a command that finds a launch ready: the launches of
// backend/launch themselves, in this process, with both and with neither.
#include "backend/cgroups/cgroup_tree.h"
#include "backend/launch/guest.h"
#include "backend/launch/launch_failure.h"
#include "backend/launch/sandbox_process.h"
#include "backend/launch/system_call_filter.h"
#include "bench/measure.h"
#include "bench/rows.h"
#include "rpc/base/limits.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <stdexcept>
#include <thread>

namespace stitchkit::bench {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kBefore{10};
constexpr double kMostMicroseconds = 100;
constexpr SessionLimits kLimits{std::uint64_t{1} << 30, limits::kSessionProcesses, 2.0};

// Lets everything through, and gives the sign by which the helper knows that there is a filter.
std::string openFilter() {
  const sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LAUNCH_FILTER_QUESTION, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | LAUNCH_FILTER_ANSWER),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return {reinterpret_cast<const char*>(program), sizeof program};
}

template <class T>
T need(Result<T> result) {
  if (!result) {
    throw std::runtime_error(result.error().message + " " + result.error().privateDetail);
  }
  if constexpr (!std::is_void_v<T>) {
    return std::move(*result);
  }
}

/// Owns a launch until a command takes it over.
class Waiting final : public SandboxProcess::Owner {
 public:
  explicit Waiting(boost::asio::io_context& io) : io_(io) {}
  void onReady() override { io_.stop(); }
  void onReport(const LaunchReport&, UniqueFd) override {}
  void onControlEnd(bool) override {}
  void onEnd(SandboxEnd end) override {
    throw std::runtime_error("a launch ended before its command: " + setUpError(end).privateDetail);
  }

 private:
  boost::asio::io_context& io_;
};

/// Commands, each in a session of its own: here nobody reaps what bubblewrap leaves, which counts in a session's
/// groups.
class Launches {
 public:
  Launches(const fs::path& directory, std::string filter, std::function<std::shared_ptr<SessionCgroup>()> makeCgroup)
      : support_(directory / "support"), makeCgroup_(std::move(makeCgroup)) {
    const fs::path workspace = directory / "workspace";
    fs::create_directories(workspace);
    struct stat status {};
    ::stat(workspace.c_str(), &status);
    workspace_ = {status.st_dev, status.st_ino};
    const SupportPaths support = need(support_.ensure());
    profile_.workspace = workspace;
    profile_.etcDirectory = support.etcDirectory;
    profile_.helper = support.helper;
    profile_.tmpBytes = static_cast<std::uint64_t>(limits::kTmpBytes);
    profile_.systemCalls = std::move(filter);
    profile_.system = probeSystemLayout();
  }

  /// A launch is made ready, waits a while, and becomes /usr/bin/true: the time of the last.
  double run() {
    const PreparedProfile profile("/usr/bin/bwrap", profile_, workspace_, nullptr, makeCgroup_());
    const auto sandbox = std::make_shared<SandboxProcess>(io_);
    need(sandbox->start(profile, std::make_shared<Waiting>(io_), LaunchPriority::kBackground));
    io_.restart();
    io_.run();
    std::this_thread::sleep_for(kBefore);
    return timed([&] { become(sandbox, profile); });
  }

 private:
  void become(const std::shared_ptr<SandboxProcess>& sandbox, const PreparedProfile& profile) {
    Command command;
    command.executable = "/usr/bin/true";
    command.workingDirectory = "/workspace";
    command.timeout = std::chrono::seconds(30);
    command.maxOutputBytes = limits::kCommandOutputBytes;
    GuestOptions options;
    options.sandbox = sandbox;
    bool good = false;
    Guest::start(io_, profile, std::move(command), {}, std::move(options), [&](Result<GuestOutcome> outcome) {
      good = outcome && outcome->exitCode == 0;
      io_.stop();
    });
    io_.restart();
    io_.run();
    if (!good) {
      throw std::runtime_error("a command of the launches without a sidecar has failed");
    }
  }

  boost::asio::io_context io_;
  SupportFiles support_;
  std::function<std::shared_ptr<SessionCgroup>()> makeCgroup_;
  LaunchProfile profile_;
  DirectoryIdentity workspace_;
};

}  // namespace

Row limitsRow(Setting& setting) {
  Row row{"the filter of system calls, and limits of memory, processes and CPU", "", "", "", "<= 100 us more", {}, ""};
  const CgroupTree tree(setting.cgroups);
  for (const auto controller : {CgroupController::kMemory, CgroupController::kProcesses, CgroupController::kCpu}) {
    if (!tree.supports(controller)) {
      row.figure = "not measured: no control group of " + std::string(resourceName(controller));
      return row;
    }
  }
  int session = 0;
  Launches bare(setting.home / "bare-launches", openFilter(), [] { return nullptr; });
  Launches limited(setting.home / "limited-launches", need(Result<std::string>(systemCallFilter())),
                   [&] { return need(tree.makeSession("bench" + std::to_string(++session), kLimits)); });
  const auto medians =
      interleavedMedians(setting.effort.rounds * 3, {[&] { return limited.run(); }, [&] { return bare.run(); }});
  const double more = (medians[0] - medians[1]) * 1e6;
  row.sidecar = formatSeconds(medians[0]);
  row.comparedTo = "with neither " + formatSeconds(medians[1]);
  row.figure = formatNumber(more, 1, "us more");
  row.met = more <= kMostMicroseconds;
  return row;
}

}  // namespace stitchkit::bench
