// Opening a path below a directory without ever leaving it: the one place where a workspace path meets the kernel.
#pragma once

#include "rpc/base/unique_fd.h"

#include <fcntl.h>

#include <string>

namespace stitchkit {

/// Opens a directory to list it; anything else that has taken its name is refused without waiting.
inline constexpr int kReadDirectory = O_RDONLY | O_DIRECTORY | O_NONBLOCK;

/// A descriptor, or the errno that says why there is none.
struct OpenOutcome {
  UniqueFd fd;
  int error = 0;
};

/// Opens `relative` (a WorkspacePath's relative(), "" for the directory itself) below `directory`. O_CLOEXEC is added.
/// No symbolic link is followed at any segment, the last included: ELOOP. Whatever others rename or replace
/// meanwhile, the descriptor is of something that was below `directory`.
/// By openat2; where the kernel or a seccomp filter refuses that call, by a walk from descriptor to descriptor (noted
/// once a process). EAGAIN is a file lease that somebody holds, with O_NONBLOCK. `flags` must not hold O_CREAT, and
/// O_PATH only together with O_DIRECTORY. Thread-safe.
OpenOutcome openBeneath(int directory, const std::string& relative, int flags);

/// openBeneath for a thread that must not wait for the disk: no descriptor where the kernel would have to look there,
/// or cannot tell (before Linux 5.12), or where anything else is in the way.
UniqueFd openBeneathCached(int directory, const std::string& relative, int flags);

/// openat with O_CLOEXEC and O_NOFOLLOW on one segment, told again after a signal; a link is ELOOP, with O_DIRECTORY
/// too.
OpenOutcome openSegment(int directory, const char* name, int flags, unsigned mode = 0);

}  // namespace stitchkit
