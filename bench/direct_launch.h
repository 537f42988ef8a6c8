// Bubblewrap started by hand with the sidecar's own launch profile: what a command costs without the sidecar.
#pragma once

#include "backend/launch/support_files.h"

#include <filesystem>
#include <string>
#include <vector>

namespace stitchkit::bench {

/// The same done to a program with no sandbox at all.
void runBare(const std::vector<std::string>& command);

class DirectLaunch {
 public:
  /// Makes `directory` with the guest's workspace, and the files that the sidecar lends to guests.
  explicit DirectLaunch(const std::filesystem::path& directory);

  /// Bubblewrap's arguments, the program's own name not among them; a command may follow.
  [[nodiscard]] const std::vector<std::string>& profile() const noexcept { return profile_; }

  /// Starts the command in a guest, reads its output to the end and reaps it. Throws unless it exits with 0.
  void run(const std::vector<std::string>& command) const;
  /// `guests` of them at the same time, to the end of the last one.
  void runTogether(const std::vector<std::string>& command, int guests) const;

 private:
  SupportFiles support_;
  std::vector<std::string> profile_;
};

}  // namespace stitchkit::bench
