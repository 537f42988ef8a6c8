// Goes down to a directory one component at a time, so that root never follows a link that somebody else planted.
#pragma once

#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

#include <string>
#include <string_view>

namespace stitchkit {

/// What a walk does with a directory that is not there.
enum class MissingDirectory : std::uint8_t {
  kStop,  ///< the walk ends at the deepest one that exists
  kMake,  ///< as `mkdir -p`: those above the last 0755, the last 0700, all the caller's own
};

/// Where a walk ended.
struct WalkEnd {
  UniqueFd directory;  ///< O_PATH, close-on-exec
  std::string path;    ///< how it was reached, for the log
  bool whole = true;   ///< false: something is missing below (only with kStop)
  bool made = false;   ///< the last component was made by this walk
};

/// Walks to the absolute `path`, over descriptors. A symbolic link is followed only when root owns it; `.` is ignored
/// and `..` refused (it does not mean the same before and after links).
/// Errors (kUnavailable) by reason: "state-directory-path" (not absolute, `..`, not a directory, over-long),
/// "state-directory-link", "state-directory-not-searchable" (the private detail names the folder), and for the rest
/// those of stateDirectoryFailure().
Result<WalkEnd> walkTo(std::string_view path, MissingDirectory missing);

/// What could not be done with a state directory, by its errno: kUnavailable, with the cause that an ordinary user's
/// sidecar and its doctor give. `operation`, for the log, names the call and the path.
Error stateDirectoryFailure(std::string_view operation, std::string_view path, int failure);

}  // namespace stitchkit
