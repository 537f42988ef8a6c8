// Who is who in these tests, which run as root: an ordinary user has nothing to give up or hand over.
#pragma once

#include "backend/privilege/user.h"
#include "tests/support/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace stitchkit::testing {

/// Whom root becomes.
inline const TargetUser kUser{kOrdinaryUid, kOrdinaryUid};

inline bool isRoot() {
  return ::geteuid() == 0;
}

/// (uid_t)-1 for what does not exist.
inline uid_t ownerOf(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_uid : static_cast<uid_t>(-1);
}

}  // namespace stitchkit::testing
