// What can be seen of bubblewrap without running it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace stitchkit {

struct ProgramFacts {
  int error = 0;              ///< errno of looking at it as the effective user: 0, ENOENT, EACCES, ...
  bool setuid = false;        ///< it has the bit
  bool capabilities = false;  ///< it has file capabilities
};

/// `path` is absolute, or relative to the working directory.
ProgramFacts lookAtProgram(const std::string& path);

/// Out of the line that `bwrap --version` prints, "bubblewrap 0.8.0". nullopt for any other line.
std::optional<std::array<int, 3>> parseBubblewrapVersion(std::string_view line);

/// The oldest that has what a sandbox needs.
inline constexpr std::array<int, 3> kOldestBubblewrap{0, 8, 0};

}  // namespace stitchkit
