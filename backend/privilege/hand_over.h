// Root gives a state directory to the user that the sidecar becomes.
#pragma once

#include "backend/privilege/user.h"
#include "rpc/base/error.h"

#include <functional>
#include <string>

namespace stitchkit {

/// Asked now and then during a long hand-over; false ends it with kCancelled. The next one takes it up again.
using KeepGoing = std::function<bool()>;

/// Makes the state directory `path` (absolute) the user's own, mode 0700, and proves that the user can reach it.
///
/// - Missing: made, as `mkdir -p` does; folders above it are root's and searchable (0755).
/// - The user's already: left alone.
/// - Root's: taken only when it is empty or holds nothing but what a sidecar writes there (folders named by 64
///   hexadecimal digits, `support`), and only when no one else can write to it. The tree below is checked whole, then
///   given away entry by entry, the directory itself last, so that an interrupted hand-over is done again.
///   What root must not give away ends it before anything has changed hands: entries of a third user, device nodes,
///   files with hard links outside the tree, other mounts.
/// - Somebody else's: refused.
///
/// Runs as root with no supplementary groups. Errors (kUnavailable) by reason: "state-directory-path",
/// "state-directory-link", "state-directory-mount", "state-directory-not-searchable", "state-directory-owner",
/// "state-directory-in-use" (it holds other things), and for the rest those of stateDirectoryFailure(); kCancelled.
Result<void> handOverStateDirectory(
    const std::string& path, const TargetUser& user, const KeepGoing& keepGoing = [] { return true; });

/// Whether `user` can search every folder above `path` that exists already. Runs as root with no supplementary groups.
Result<void> checkReachable(const std::string& path, const TargetUser& user);

}  // namespace stitchkit
