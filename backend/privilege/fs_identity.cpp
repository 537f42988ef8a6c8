#include "backend/privilege/fs_identity.h"

#include <sys/fsuid.h>

namespace stitchkit {

FsIdentity::FsIdentity(const TargetUser& user) noexcept
    : formerUid_(0), formerGid_(static_cast<gid_t>(::setfsgid(user.gid))) {
  // The uid last: with it go CAP_CHOWN, CAP_DAC_OVERRIDE and their like (capabilities(7)).
  formerUid_ = static_cast<uid_t>(::setfsuid(user.uid));
}

FsIdentity::~FsIdentity() {
  ::setfsuid(formerUid_);
  ::setfsgid(formerGid_);
}

}  // namespace stitchkit
