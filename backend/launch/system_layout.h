// What of the machine a launch profile depends on: found once, so that the profile itself stays a pure function.
#pragma once

#include <string>
#include <vector>

namespace stitchkit {

/// A top-level system directory as the guest is to see it.
struct SystemDirectory {
  std::string path;           ///< "/lib64"
  std::string symlinkTarget;  ///< "usr/lib64" when it is a link into /usr; "" when it is a directory to bind
};

struct SystemLayout {
  std::vector<SystemDirectory> directories;  ///< beside /usr, those that exist
  std::vector<std::string> procCovers;       ///< what below /proc a guest with the host's uid 0 could write
};

/// Looks at the machine. Never fails: what is not there is left out.
SystemLayout probeSystemLayout();

}  // namespace stitchkit
