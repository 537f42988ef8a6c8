#include "backend/cgroups/session_cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <tuple>

#include "backend/cgroups/cgroup_files.h"

namespace stitchkit {
namespace {

// The kernel's default period, and the least quota that it takes in one.
constexpr std::uint64_t kCpuPeriodUs = 100000;
constexpr std::uint64_t kLeastCpuQuotaUs = 1000;
// No machine has more, and what the kernel takes ends somewhere.
constexpr double kMostCpus = 10000;
constexpr std::uint64_t kMostProcesses = 4194304;
constexpr int kProcessesBeside = 16;
// How often a group is tried to be removed whose last process is seen to have ended, but not yet by the kernel's count.
// No event tells of that.
constexpr int kRemovals = 20;

Error limitError(CgroupController controller, int failure) {
  return Error(ErrorKind::kUnavailable, "A ceiling of the session cannot be set")
      .withDetail("resource", resourceName(controller))
      .withHint("Ask for another value, or leave it out.")
      .withPrivate(std::string("control group: ") + errnoName(failure));
}

std::string readAgain(const UniqueFd& file) {
  char text[512];
  const ssize_t size = file ? ::pread(file.get(), text, sizeof text, 0) : 0;
  return {text, size > 0 ? static_cast<std::size_t>(size) : 0};
}

UniqueFd openForReading(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace

const char* resourceName(CgroupController controller) {
  switch (controller) {
    case CgroupController::kMemory:
      return "memoryBytes";
    case CgroupController::kProcesses:
      return "maxProcesses";
    case CgroupController::kCpu:
      return "cpus";
  }
  return "";
}

bool isLimited(const SessionLimits& limits, CgroupController controller) {
  switch (controller) {
    case CgroupController::kMemory:
      return limits.memoryBytes.has_value();
    case CgroupController::kProcesses:
      return limits.processes.has_value();
    case CgroupController::kCpu:
      return limits.cpus.has_value();
  }
  return false;
}

SessionCgroup::~SessionCgroup() {
  for (auto directory = directories_.rbegin(); directory != directories_.rend(); ++directory) {
    for (int attempt = 0; ::rmdir(directory->c_str()) != 0 && errno == EBUSY && attempt < kRemovals; ++attempt) {
      ::usleep(50);
    }
  }
}

Result<void> SessionCgroup::add(int version, const std::string& directory, CgroupController controller,
                                const SessionLimits& limits) {
  const bool isNew = std::find(directories_.begin(), directories_.end(), directory) == directories_.end();
  int failure = isNew ? make(directory) : 0;
  if (isNew && failure == 0 && (version == 2 || controller != CgroupController::kProcesses)) {
    failure = version == 1 ? enterOld(directory) : enterNew(directory);
  }
  if (failure == 0) {
    switch (controller) {
      case CgroupController::kMemory:
        failure = limitMemory(version, directory, limits.memoryBytes.value());
        break;
      case CgroupController::kProcesses:
        failure = limitProcesses(version, directory, limits.processes.value());
        break;
      case CgroupController::kCpu:
        failure = limitCpu(version, directory, limits.cpus.value());
        break;
    }
  }
  return failure == 0 ? Result<void>() : limitError(controller, failure);
}

int SessionCgroup::make(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0755) != 0) {
    return errno;
  }
  directories_.push_back(directory);
  return 0;
}

int SessionCgroup::enterOld(const std::string& directory) {
  UniqueFd entrance(::open((directory + "/tasks").c_str(), O_WRONLY | O_CLOEXEC));
  if (!entrance) {
    return errno;
  }
  tasks_.push_back(std::move(entrance));
  return 0;
}

int SessionCgroup::enterNew(const std::string& directory) {
  born_ = UniqueFd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return born_ ? 0 : errno;
}

// With swap, if the machine counts it: a limit that only moves pages to the disk is none.
int SessionCgroup::limitMemory(int version, const std::string& directory, std::uint64_t bytes) {
  const std::string text = std::to_string(bytes);
  const int failure = writeCgroupFile(directory + (version == 1 ? "/memory.limit_in_bytes" : "/memory.max"), text);
  if (failure != 0) {
    return failure;
  }
  const int swap = version == 1 ? writeCgroupFile(directory + "/memory.memsw.limit_in_bytes", text)
                                : writeCgroupFile(directory + "/memory.swap.max", "0");
  if (swap != 0 && swap != ENOENT) {
    return swap;
  }
  memoryUsage_ = openForReading(directory + (version == 1 ? "/memory.usage_in_bytes" : "/memory.current"));
  memoryEvents_ = openForReading(directory + (version == 1 ? "/memory.oom_control" : "/memory.events"));
  return memoryEvents_ ? 0 : errno;
}

// Below `directory`, which version 2 wants without processes, and which keeps its name from the guest in version 1.
int SessionCgroup::limitProcesses(int version, const std::string& directory, std::uint64_t processes) {
  const std::string guest = directory + "/guest";
  const std::string ours = directory + "/launch";
  int failure = make(guest);
  failure = failure == 0 ? make(ours) : failure;
  failure = failure == 0 && version == 2 ? writeCgroupFile(directory + "/cgroup.subtree_control", "+pids") : failure;
  failure = failure == 0 ? (version == 1 ? enterOld(ours) : enterNew(ours)) : failure;
  if (failure == 0) {
    failure = writeCgroupFile(guest + "/pids.max", std::to_string(std::min(processes, kMostProcesses)));
  }
  if (failure != 0) {
    return failure;
  }
  guest_ = UniqueFd(::open((guest + (version == 1 ? "/tasks" : "/cgroup.procs")).c_str(), O_WRONLY | O_CLOEXEC));
  processesEvents_ = openForReading(guest + "/pids.events");
  oursMax_ = UniqueFd(::open((ours + "/pids.max").c_str(), O_WRONLY | O_CLOEXEC));
  return guest_ && oursMax_ ? 0 : errno;
}

int SessionCgroup::limitCpu(int version, const std::string& directory, double cpus) {
  cpuVersion_ = version;
  cpuQuota_ =
      UniqueFd(::open((directory + (version == 1 ? "/cpu.cfs_quota_us" : "/cpu.max")).c_str(), O_WRONLY | O_CLOEXEC));
  const double wanted = std::min(cpus, kMostCpus) * static_cast<double>(kCpuPeriodUs);
  cpuQuotaUs_ = std::max(kLeastCpuQuotaUs, static_cast<std::uint64_t>(std::llround(wanted)));
  return cpuQuota_ ? setCpuQuota(cpuQuotaUs_) : errno;
}

int SessionCgroup::setCpuQuota(std::uint64_t quotaUs) const {
  const std::string quota = std::to_string(quotaUs);
  const std::string text = cpuVersion_ == 1 ? quota : quota + " " + std::to_string(kCpuPeriodUs);
  return ::pwrite(cpuQuota_.get(), text.data(), text.size(), 0) < 0 ? errno : 0;
}

// Not "none": to switch a group's quota on and off makes the kernel stop all processors.
void SessionCgroup::beginHurry() {
  if (cpuQuota_ && hurries_++ == 0) {
    std::ignore = setCpuQuota(static_cast<std::uint64_t>(kMostCpus) * kCpuPeriodUs);
  }
}

void SessionCgroup::endHurry() {
  if (cpuQuota_ && --hurries_ == 0) {
    std::ignore = setCpuQuota(cpuQuotaUs_);
  }
}

// A killed process takes its place until it has been reaped, so that as many as there ever were may be on their way
// out.
void SessionCgroup::allow(int processes) {
  ours_ += processes;
  if (!oursMax_ || ours_ <= mostOurs_) {
    return;
  }
  mostOurs_ = ours_;
  const std::string text = std::to_string(2 * mostOurs_ + kProcessesBeside);
  // With too little room the launch fails and says so.
  std::ignore = ::pwrite(oursMax_.get(), text.data(), text.size(), 0);
}

CgroupCounts SessionCgroup::counts() const {
  return {cgroupCounter(readAgain(memoryEvents_), "oom_kill"), cgroupCounter(readAgain(processesEvents_), "max")};
}

std::optional<std::uint64_t> SessionCgroup::memoryBytes() const {
  const std::string text = readAgain(memoryUsage_);
  return text.empty() ? std::nullopt : std::optional(std::stoull(text));
}

}  // namespace stitchkit
