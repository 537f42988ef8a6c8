// The control groups of one session: what holds for all of its commands together. Every process of a launch is in them
// from before it executes anything, so that nothing a guest does begins outside.
//
// Where processes are limited, those of a launch that are ours (bwrap, its init, and the helper until it becomes the
// guest's program) are in a group beside the guest's, with the room that they need: the guest's limit is exact, a fork
// loop does not keep other commands from starting, and a guest that takes over its init gains a bounded number. The
// helper enters the guest's group itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/cgroups/cgroup_delegation.h"
#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

namespace stitchkit {

/// Ceilings of a session as a whole.
struct SessionLimits {
  std::optional<std::uint64_t> memoryBytes;
  std::optional<std::uint64_t> processes;  ///< processes and threads
  std::optional<double> cpus;              ///< CPU seconds a second
};

/// Whether there is one that takes this controller.
bool isLimited(const SessionLimits& limits, CgroupController controller);

/// How a process that is being started gets into a session's groups.
struct CgroupJoin {
  /// Version 1: it writes "0" into each before it executes anything. `tasks`, since that takes no lock that waits for
  /// all processors (`cgroup.procs`: up to 14 ms).
  std::span<const UniqueFd> tasks;
  /// Version 2: it is born there (CLONE_INTO_CGROUP); -1: nowhere else than its parent.
  int directory = -1;
};

/// What of a limit has been reached so far.
struct CgroupCounts {
  std::uint64_t memoryKills = 0;       ///< processes that the kernel has killed for want of memory
  std::uint64_t refusedProcesses = 0;  ///< forks that failed
};

/// Made on any thread; then allow() and the hurrying on the loop thread only, and the rest of it const.
class SessionCgroup {
 public:
  SessionCgroup() = default;
  SessionCgroup(const SessionCgroup&) = delete;
  SessionCgroup& operator=(const SessionCgroup&) = delete;
  /// Removes the groups; where a process is left, CgroupTree and the warden do so later.
  ~SessionCgroup();

  /// Makes the group `directory` if it is not there yet and sets the limit of `controller`. Errors: kUnavailable with
  /// `details.resource`.
  Result<void> add(int version, const std::string& directory, CgroupController controller, const SessionLimits& limits);
  [[nodiscard]] bool empty() const { return directories_.empty(); }

  [[nodiscard]] CgroupJoin join() const { return {tasks_, born_ ? born_.get() : -1}; }
  /// What the helper writes "0" into before it becomes the guest's program; -1: nothing.
  [[nodiscard]] int guestEntrance() const { return guest_ ? guest_.get() : -1; }
  /// So many more processes (or fewer) of ours there are.
  void allow(int processes);
  /// Processor time has no ceiling from the first beginHurry() to the last endHurry(): a killed process needs some in
  /// order to end, and with little of it a deadline would be met late.
  void beginHurry();
  void endHurry();

  [[nodiscard]] bool limitsMemory() const { return memoryEvents_.valid(); }
  [[nodiscard]] CgroupCounts counts() const;
  /// Bytes in use, if memory is limited.
  [[nodiscard]] std::optional<std::uint64_t> memoryBytes() const;

 private:
  // Each returns 0 or an errno.
  int make(const std::string& directory);
  int enterOld(const std::string& directory);
  int enterNew(const std::string& directory);
  int limitMemory(int version, const std::string& directory, std::uint64_t bytes);
  int limitProcesses(int version, const std::string& directory, std::uint64_t processes);
  int limitCpu(int version, const std::string& directory, double cpus);
  [[nodiscard]] int setCpuQuota(std::uint64_t quotaUs) const;

  std::vector<std::string> directories_;  // the outer ones first
  std::vector<UniqueFd> tasks_;
  UniqueFd born_;
  UniqueFd guest_;
  UniqueFd memoryEvents_, memoryUsage_, oursMax_, processesEvents_, cpuQuota_;
  int cpuVersion_ = 0;
  std::uint64_t cpuQuotaUs_ = 0;
  int hurries_ = 0;
  int ours_ = 0;
  int mostOurs_ = 0;
};

/// The member of `resources` that a controller stands for.
const char* resourceName(CgroupController controller);

}  // namespace stitchkit
