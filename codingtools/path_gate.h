// Who may see which path of a tree: the host's policy, as a walk asks for it.
#pragma once

#include "rpc/base/error.h"

#include <stop_token>
#include <string>
#include <vector>

namespace stitchkit {

/// Asked on the thread that walks, where it may block for an answer. An error ends the walk with that error; `stop`
/// ends the wait.
class PathGate {
 public:
  virtual ~PathGate() = default;

  /// One answer for each path, as tools name them, in order; another number of answers is an error.
  virtual Result<std::vector<bool>> allowed(const std::vector<std::string>& paths, const std::stop_token& stop) = 0;
};

}  // namespace stitchkit
