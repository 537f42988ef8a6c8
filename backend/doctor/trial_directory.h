// A directory for a trial, below the state directory.
#pragma once

#include <string>

#include "rpc/base/unique_fd.h"

namespace stitchkit {

/// Lies in `<state>/support` under a name of what is half done, and locked, so that whoever sweeps there (the next
/// sidecar, gc) removes the one of a doctor that was killed, and leaves a live one's alone. One at a time in a process.
class TrialDirectory {
 public:
  /// Makes it, and what is missing above. valid() or an errno.
  explicit TrialDirectory(const std::string& stateDirectory);
  /// Removes it and what it holds.
  ~TrialDirectory();
  TrialDirectory(const TrialDirectory&) = delete;
  TrialDirectory& operator=(const TrialDirectory&) = delete;

  [[nodiscard]] bool valid() const noexcept { return directory_.operator bool(); }
  [[nodiscard]] int error() const noexcept { return error_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] int descriptor() const noexcept { return directory_.get(); }

  /// Its name, the same for each of this process and of children that are forked after the first call.
  static const std::string& name();

 private:
  int makeParents(const std::string& stateDirectory);
  int make();

  std::string path_;
  UniqueFd parent_;
  UniqueFd directory_;
  int error_ = 0;
};

}  // namespace stitchkit
