#include "rpc/base/unique_fd.h"

#include <cerrno>

namespace stitchkit {

void UniqueFd::reset(int fd) noexcept {
  if (fd_ >= 0) {
    const int saved = errno;
    // close(2) on Linux releases the descriptor even when it reports EINTR; it must not be repeated.
    ::close(fd_);
    errno = saved;
  }
  fd_ = fd;
}

}  // namespace stitchkit
