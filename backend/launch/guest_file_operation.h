// File operations in the guest's view, done by the launch helper: for session files whose path leads through a
// symbolic link, which only the guest's view resolves as a guest would. Threading as in guest.h.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "backend/launch/launch_profile.h"
#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

namespace boost::asio {
class io_context;
}

namespace stitchkit {

struct GuestOpenRequest {
  std::string path;            ///< canonical: "/workspace/..."; holds no NUL
  int flags = 0;               ///< O_RDONLY, O_CREAT, ...; O_NONBLOCK, O_NOCTTY and O_CLOEXEC are added
  mode_t mode = 0644;          ///< for O_CREAT; umask is 022
  bool createParents = false;  ///< missing directories above the path, 0755
};

class GuestFileOperation {
 public:
  virtual ~GuestFileOperation() = default;
  /// Ends it; the completion follows, with kCancelled unless the operation was done.
  virtual void cancel() = 0;
};

/// Opens a path; the descriptor may be of any kind of file that the guest can open: the caller tests it. `completion`
/// is called once, from the loop, when nothing of the launch is left. Errors: kPath with `details.errno`; kUnavailable
/// (no sandbox); kLimit, reason "deadline"; kCancelled.
std::shared_ptr<GuestFileOperation> openInGuest(boost::asio::io_context& io, const PreparedProfile& profile,
                                                const GuestOpenRequest& request, std::chrono::milliseconds timeout,
                                                std::function<void(Result<UniqueFd>)> completion);

/// What `rm -rf PATH` does: a link at the end is removed, not followed; a missing path is no error. Errors as above.
std::shared_ptr<GuestFileOperation> removeInGuest(boost::asio::io_context& io, const PreparedProfile& profile,
                                                  const std::string& path, std::chrono::milliseconds timeout,
                                                  std::function<void(Result<void>)> completion);

}  // namespace stitchkit
