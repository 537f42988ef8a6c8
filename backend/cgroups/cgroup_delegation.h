// Where this process may make control groups. Settled once at the start, while root is not given up yet: what root
// makes it hands over to the user that it becomes.
//
// Version 1: for each controller a directory `stitchkit-sandbox-<uid>` in the group that the process was started in, so
// that whatever limits that group limits guests as well. It stays when the sidecar ends (only root could remove it).
// Version 2: the same in the group of the process, or below `--cgroup PATH`; since a group that hands controllers on
// may hold no process itself, the sidecar moves into a leaf of its own. Where another process shares the group, it
// cannot be done.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "backend/cgroups/cgroup_hierarchy.h"
#include "rpc/base/unique_fd.h"

namespace stitchkit {

enum class CgroupController : std::uint8_t { kMemory, kProcesses, kCpu };
inline constexpr std::size_t kCgroupControllers = 3;
/// The kernel's names, in the order of CgroupController.
using ControllerNames = std::array<const char*, kCgroupControllers>;
inline constexpr ControllerNames kControllerNames{"memory", "pids", "cpu"};

inline constexpr std::array kAllControllers{CgroupController::kMemory, CgroupController::kProcesses,
                                            CgroupController::kCpu};

/// Where groups of one controller may be made.
struct CgroupBase {
  int version = 0;
  std::string directory;  ///< host path
};

struct CgroupOwner {
  std::uint32_t uid;
  std::uint32_t gid;
};

struct CgroupRequest {
  bool off = false;                  ///< --cgroup none
  std::optional<std::string> path;   ///< --cgroup PATH: a group of the hierarchy instead of the process's own
  std::optional<CgroupOwner> owner;  ///< whom what is made is for, when it is not this process's user
};

struct CgroupDelegation {
  std::array<std::optional<CgroupBase>, kCgroupControllers> bases;
  UniqueFd lock;     ///< of version 2: keeps others from sweeping this sidecar's directory away
  std::string note;  ///< why a controller is missing; private. "" when none is

  [[nodiscard]] const std::optional<CgroupBase>& base(CgroupController controller) const {
    return bases[static_cast<std::size_t>(controller)];
  }
};

/// Never fails: what is not to be had is missing, with a note. Call it before any thread exists, and before root is
/// given up. `names` are version 2's names of the controllers (others in tests: of those that a machine has).
CgroupDelegation delegateCgroups(const CgroupRequest& request, const std::vector<CgroupHierarchy>& hierarchies,
                                 const ControllerNames& names = kControllerNames);
/// The directories that delegateCgroups() makes where they are missing, and that outlive the process. For this machine.
std::vector<std::string> delegatedDirectories(const CgroupRequest& request);

/// For this machine.
CgroupDelegation delegateCgroups(const CgroupRequest& request);

}  // namespace stitchkit
