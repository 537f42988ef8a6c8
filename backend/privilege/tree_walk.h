// Visits everything below a directory, children before their directory, without following anything out of it.
#pragma once

#include "rpc/base/error.h"

#include <sys/stat.h>

#include <functional>
#include <string>

namespace stitchkit {

/// One entry. `descriptor` is open on exactly this inode: O_PATH for what is no directory.
struct TreeEntry {
  int descriptor;
  const struct stat& info;
  const std::string& path;  ///< relative to the top, for the log
};

using TreeVisit = std::function<Result<void>(const TreeEntry&)>;

/// Calls `visit` for every entry below `top` (an open directory, which is not visited itself). Symbolic links are
/// entries, never ways. An entry on another mount ends the walk with reason "state-directory-mount". Depth costs
/// memory, not stack and not descriptors: two are open at any depth. Names of one directory are held in memory.
/// The tree must not change meanwhile: a directory that is moved ends the walk with kInternal.
Result<void> walkTree(int top, const TreeVisit& visit);

}  // namespace stitchkit
