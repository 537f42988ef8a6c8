// Which of the directories on a path were missing, so that they can go again.
#pragma once

#include <string>
#include <vector>

#include "rpc/base/unique_fd.h"

namespace stitchkit {

class MadeDirectories {
 public:
  /// Looks at an absolute path before anything is made.
  explicit MadeDirectories(const std::string& path);

  /// Removes those of the directories that were missing and are empty, the innermost first. Over descriptors from the
  /// directory that was there, never through a link: safe for root in a folder of somebody else.
  void removeEmpty() const;

 private:
  UniqueFd existing_;
  std::vector<std::string> missing_;  // below it, outermost first
};

}  // namespace stitchkit
