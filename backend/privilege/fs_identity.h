// The kernel's own answer to "may this user reach that path", asked by a process that is still root.
#pragma once

#include "backend/privilege/user.h"

namespace stitchkit {

/// While it lives, the calling thread meets the file system as `user`, without root's rights; nothing else of the
/// process changes. Only for a root thread that has given up its supplementary groups (they are not switched).
/// Kept to one thread by setfsuid(2), so it is safe beside other threads too.
class FsIdentity {
 public:
  explicit FsIdentity(const TargetUser& user) noexcept;
  ~FsIdentity();
  FsIdentity(const FsIdentity&) = delete;
  FsIdentity& operator=(const FsIdentity&) = delete;

 private:
  uid_t formerUid_;
  gid_t formerGid_;
};

}  // namespace stitchkit
