// What can be seen of bubblewrap without running it.
#pragma once

#include <string>

namespace stitchkit {

struct ProgramFacts {
  int error = 0;              ///< errno of looking at it as the effective user: 0, ENOENT, EACCES, ...
  bool setuid = false;        ///< it has the bit
  bool capabilities = false;  ///< it has file capabilities
};

/// `path` is absolute, or relative to the working directory.
ProgramFacts lookAtProgram(const std::string& path);

}  // namespace stitchkit
