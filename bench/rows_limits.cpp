// What the filter of system calls and a session's limits add to a command that finds a launch ready: the launches of
// backend/launch themselves, in this process, with both and with neither.
#include "backend/cgroups/cgroup_tree.h"
#include "backend/launch/guest.h"
#include "backend/launch/sandbox_process.h"
#include "backend/launch/system_call_filter.h"
#include "bench/measure.h"
#include "bench/rows.h"
#include "rpc/base/limits.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/stat.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <stdexcept>
#include <thread>

namespace stitchkit::bench {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kBefore{10};
constexpr double kMostMicroseconds = 100;
constexpr SessionLimits kLimits{std::uint64_t{1} << 30, limits::kSessionProcesses, 2.0};

// A filter that lets everything through: a launch without one is refused.
std::string openFilter() {
  const sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  return {reinterpret_cast<const char*>(&allow), sizeof allow};
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
  void onControlEnd() override {}
  void onEnd(SandboxEnd) override { throw std::runtime_error("a launch ended before its command"); }

 private:
  boost::asio::io_context& io_;
};

/// Commands of one profile.
class Launches {
 public:
  Launches(const fs::path& directory, std::string filter, std::shared_ptr<SessionCgroup> cgroup)
      : support_(directory / "support") {
    const fs::path workspace = directory / "workspace";
    fs::create_directories(workspace);
    struct stat status {};
    ::stat(workspace.c_str(), &status);
    const SupportPaths support = need(support_.ensure());
    LaunchProfile profile;
    profile.workspace = workspace;
    profile.etcDirectory = support.etcDirectory;
    profile.helper = support.helper;
    profile.tmpBytes = static_cast<std::uint64_t>(limits::kTmpBytes);
    profile.systemCalls = std::move(filter);
    profile.system = probeSystemLayout();
    profile_ = std::make_unique<PreparedProfile>(
        "/usr/bin/bwrap", profile, DirectoryIdentity{status.st_dev, status.st_ino}, nullptr, std::move(cgroup));
  }

  /// A launch is made ready, waits a while, and becomes /usr/bin/true: the time of the last.
  double run() {
    const auto sandbox = std::make_shared<SandboxProcess>(io_);
    need(sandbox->start(*profile_, std::make_shared<Waiting>(io_), LaunchPriority::kBackground));
    io_.restart();
    io_.run();
    std::this_thread::sleep_for(kBefore);
    return timed([&] { become(sandbox); });
  }

 private:
  void become(const std::shared_ptr<SandboxProcess>& sandbox) {
    Command command;
    command.executable = "/usr/bin/true";
    command.workingDirectory = "/workspace";
    command.timeout = std::chrono::seconds(30);
    command.maxOutputBytes = limits::kCommandOutputBytes;
    GuestOptions options;
    options.sandbox = sandbox;
    bool good = false;
    Guest::start(io_, *profile_, std::move(command), {}, std::move(options), [&](Result<GuestOutcome> outcome) {
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
  std::unique_ptr<PreparedProfile> profile_;
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
  Launches bare(setting.home / "bare-launches", openFilter(), nullptr);
  Launches limited(setting.home / "limited-launches", need(Result<std::string>(systemCallFilter())),
                   need(tree.makeSession("bench", kLimits)));
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
