// Gives up root, so that everything in the table runs as one ordinary user and pays the same.
#pragma once

#include "backend/cgroups/cgroup_delegation.h"

#include <filesystem>
#include <vector>

namespace stitchkit::bench {

/// A temporary directory of the benchmark, removed by the destructor. A benchmark started by root is `nobody` from the
/// constructor on, and the directory is nobody's. Make it before threads.
class UnprivilegedHome {
 public:
  /// Copies `programs`, files or whole folders, into the directory: where they stand, an ordinary user may not get at
  /// them.
  explicit UnprivilegedHome(const std::vector<std::filesystem::path>& programs);
  UnprivilegedHome(const UnprivilegedHome&) = delete;
  UnprivilegedHome& operator=(const UnprivilegedHome&) = delete;
  ~UnprivilegedHome();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// Where it may make control groups, and sidecars that it starts.
  [[nodiscard]] const CgroupDelegation& cgroups() const noexcept { return cgroups_; }

 private:
  std::filesystem::path path_;
  CgroupDelegation cgroups_;
};

}  // namespace stitchkit::bench
