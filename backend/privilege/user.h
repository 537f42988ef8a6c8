// The ordinary user that a sidecar started by root becomes.
#pragma once

#include "rpc/base/error.h"

#include <sys/types.h>

#include <string>

namespace stitchkit {

/// Never root: resolveUser refuses uid 0 and primary group 0.
struct TargetUser {
  uid_t uid = 0;
  gid_t gid = 0;

  friend bool operator==(const TargetUser&, const TargetUser&) = default;
};

/// Finds a user by name, or by number when `nameOrUid` is all digits. A number without an account gets the group of
/// the same number, never group 0.
/// Errors (kUnavailable) by reason: "user-unknown", "user-is-root".
/// Uses the system's user database; call it before threads exist.
Result<TargetUser> resolveUser(const std::string& nameOrUid);

}  // namespace stitchkit
