// A directory for a trial, below the state directory.
#pragma once

#include <string>

#include "rpc/base/unique_fd.h"

namespace stitchkit {

/// Named as the backends' own directories are, so that one that outlives a killed doctor is no stranger to sidecars.
class TrialDirectory {
 public:
  /// Makes it, and the state directory where that is missing. valid() or an errno.
  explicit TrialDirectory(const std::string& stateDirectory);
  /// Removes it and what it holds.
  ~TrialDirectory();
  TrialDirectory(const TrialDirectory&) = delete;
  TrialDirectory& operator=(const TrialDirectory&) = delete;

  [[nodiscard]] bool valid() const noexcept { return directory_.operator bool(); }
  [[nodiscard]] int error() const noexcept { return error_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] int descriptor() const noexcept { return directory_.get(); }

 private:
  std::string name_;
  std::string path_;
  UniqueFd parent_;
  UniqueFd directory_;
  int error_ = 0;
};

}  // namespace stitchkit
