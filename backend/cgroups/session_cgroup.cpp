#include "backend/cgroups/session_cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "backend/cgroups/cgroup_files.h"

namespace stitchkit {
namespace {

// The kernel's default period, and the least quota that it takes in one.
constexpr std::uint64_t kCpuPeriodUs = 100000;
constexpr std::uint64_t kLeastCpuQuotaUs = 1000;
// No machine has more, and what the kernel takes ends somewhere.
constexpr double kMostCpus = 10000;
constexpr std::uint64_t kMostProcesses = 4194304;
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

SessionCgroup::~SessionCgroup() {
  for (const std::string& directory : directories_) {
    for (int attempt = 0; ::rmdir(directory.c_str()) != 0 && errno == EBUSY && attempt < kRemovals; ++attempt) {
      ::usleep(50);
    }
  }
}

Result<void> SessionCgroup::add(int version, const std::string& directory, CgroupController controller,
                                const SessionLimits& limits) {
  const bool isNew = std::find(directories_.begin(), directories_.end(), directory) == directories_.end();
  int failure = isNew ? enter(version, directory) : 0;
  if (failure == 0) {
    switch (controller) {
      case CgroupController::kMemory:
        failure = limitMemory(version, directory, limits.memoryBytes.value());
        break;
      case CgroupController::kProcesses:
        failure = limitProcesses(directory, limits.processes.value());
        break;
      case CgroupController::kCpu:
        failure = limitCpu(version, directory, limits.cpus.value());
        break;
    }
  }
  return failure == 0 ? Result<void>() : limitError(controller, failure);
}

int SessionCgroup::enter(int version, const std::string& directory) {
  if (::mkdir(directory.c_str(), 0755) != 0) {
    return errno;
  }
  directories_.push_back(directory);
  UniqueFd entrance = version == 1 ? UniqueFd(::open((directory + "/tasks").c_str(), O_WRONLY | O_CLOEXEC))
                                   : UniqueFd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!entrance) {
    return errno;
  }
  if (version == 1) {
    tasks_.push_back(std::move(entrance));
  } else {
    born_ = std::move(entrance);
  }
  return 0;
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

int SessionCgroup::limitProcesses(const std::string& directory, std::uint64_t processes) {
  processesEvents_ = openForReading(directory + "/pids.events");
  processesMax_ = UniqueFd(::open((directory + "/pids.max").c_str(), O_WRONLY | O_CLOEXEC));
  processes_ = std::min(processes, kMostProcesses);
  const std::string text = std::to_string(processes_);
  return processesMax_ && ::pwrite(processesMax_.get(), text.data(), text.size(), 0) >= 0 ? 0 : errno;
}

int SessionCgroup::limitCpu(int version, const std::string& directory, double cpus) {
  const double wanted = std::min(cpus, kMostCpus) * static_cast<double>(kCpuPeriodUs);
  const std::uint64_t quota = std::max(kLeastCpuQuotaUs, static_cast<std::uint64_t>(std::llround(wanted)));
  return version == 1
             ? writeCgroupFile(directory + "/cpu.cfs_quota_us", std::to_string(quota))
             : writeCgroupFile(directory + "/cpu.max", std::to_string(quota) + " " + std::to_string(kCpuPeriodUs));
}

void SessionCgroup::allow(int processes) {
  allowed_ += processes;
  if (processesMax_) {
    const std::string text =
        std::to_string(processes_ + static_cast<std::uint64_t>(std::max<std::int64_t>(0, allowed_)));
    // A limit that was taken is taken again.
    static_cast<void>(::pwrite(processesMax_.get(), text.data(), text.size(), 0));
  }
}

CgroupCounts SessionCgroup::counts() const {
  return {cgroupCounter(readAgain(memoryEvents_), "oom_kill"), cgroupCounter(readAgain(processesEvents_), "max")};
}

std::optional<std::uint64_t> SessionCgroup::memoryBytes() const {
  const std::string text = readAgain(memoryUsage_);
  return text.empty() ? std::nullopt : std::optional(std::stoull(text));
}

}  // namespace stitchkit
