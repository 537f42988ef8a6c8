// Control groups as the host sees them.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/support/sidecar.h"

namespace stitchkit::testing {

/// The host path of the group that a process is in, by a controller's name of version 1 or where version 2 has it; ""
/// when it cannot be told.
std::string groupOf(pid_t pid, const std::string& controller);

/// Host paths of the groups of a sidecar: its own directory for each controller, if it is there.
std::vector<std::string> sidecarGroups(pid_t sidecar);

/// Those below, one for each session and controller.
std::vector<std::string> sessionGroups(pid_t sidecar);

/// A group of each controller that an ordinary user may use, as an operator would make it. It goes, with all below, at
/// the end.
class DelegatedGroups {
 public:
  DelegatedGroups();
  DelegatedGroups(const DelegatedGroups&) = delete;
  DelegatedGroups& operator=(const DelegatedGroups&) = delete;
  ~DelegatedGroups();
  /// For --cgroup.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::vector<std::string> directories_;
};

/// Options of a sidecar that can limit what sessions take: root may make groups by itself, an ordinary user in
/// `delegated`.
SidecarOptions limitingOptions(StartAs startAs, const DelegatedGroups& delegated);

}  // namespace stitchkit::testing
