// The control groups of one sidecar: below each delegated directory one of its own, in it one for each session that has
// limits. Who owns a directory holds a lock on it; one without an owner is what a killed sidecar has left, and goes.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/cgroups/cgroup_delegation.h"
#include "backend/cgroups/session_cgroup.h"
#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

namespace stitchkit {

/// Thread-safe once made.
class CgroupTree {
 public:
  /// Without any: nothing is supported.
  CgroupTree() = default;
  /// Makes the directories, and removes those of dead sidecars. A controller for which that fails is not supported.
  explicit CgroupTree(const CgroupDelegation& delegation);
  CgroupTree(CgroupTree&&) noexcept = default;
  CgroupTree& operator=(CgroupTree&&) = delete;
  CgroupTree(const CgroupTree&) = delete;
  CgroupTree& operator=(const CgroupTree&) = delete;
  /// Removes what is empty by then.
  ~CgroupTree();

  [[nodiscard]] bool supports(CgroupController controller) const { return !place(controller).directory.empty(); }
  /// What is removed when the sidecar has died (warden.h).
  [[nodiscard]] std::vector<std::string> directories() const;

  /// A group with these limits; nullptr when none of them is one that is supported. `name` is a file name, unique in
  /// this sidecar. Blocks (milliseconds). Errors: kUnavailable with `details.resource`.
  [[nodiscard]] Result<std::shared_ptr<SessionCgroup>> makeSession(const std::string& name,
                                                                   const SessionLimits& limits) const;

 private:
  struct Place {
    int version = 0;
    std::string directory;  // "": not supported
  };
  [[nodiscard]] const Place& place(CgroupController controller) const {
    return places_[static_cast<std::size_t>(controller)];
  }

  std::array<Place, kCgroupControllers> places_;
  std::vector<UniqueFd> locks_;
};

}  // namespace stitchkit
