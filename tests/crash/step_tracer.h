// Follows a sidecar from system call to system call, and kills it in front of one.
#pragma once

#include "rpc/base/unique_fd.h"

#include <sys/types.h>

#include <string>
#include <vector>

namespace stitchkit::testing {

/// A process beside the test, since a tracer has to wait for what it traces. It follows all threads of the target,
/// those that begin later too, and none of its children (guests, the warden).
///
/// A step is a system call that changes something that outlives the process, or begins something that could: files and
/// directories below `root` made, written, renamed, removed, locked or forced to the disk, Unix sockets bound,
/// processes started, messages sent to them.
class StepTracer {
 public:
  /// Returns when the target is followed. `killBefore`: the step, counted from 1, that does not happen any more, since
  /// the target gets SIGKILL in its place; 0 for none. Throws when the target cannot be traced.
  StepTracer(pid_t target, std::string root, unsigned killBefore);
  ~StepTracer();
  StepTracer(const StepTracer&) = delete;
  StepTracer& operator=(const StepTracer&) = delete;

  /// Lets the target go, and gives each step that was seen: the system call and its paths, a directory as `DIR/`. When
  /// the target was killed the last one is the step that did not happen.
  std::vector<std::string> finish();
  /// Whether it was killed; to be asked after finish().
  [[nodiscard]] bool killed() const { return killed_; }

 private:
  pid_t tracer_ = -1;
  UniqueFd log_;
  bool killed_ = false;
};

}  // namespace stitchkit::testing
