#include "rpc/base/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "rpc/base/log.h"

namespace stitchkit {

void holdStandardStreams() noexcept {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF) {
      // The lowest free number is this one. For reading, stdout as well: who prints has to hear that nobody reads.
      static_cast<void>(::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY));
    }
  }
}

bool writeStandardOutput(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t size = ::write(STDOUT_FILENO, text.data(), text.size());
    if (size >= 0) {
      text.remove_prefix(static_cast<std::size_t>(size));
      continue;
    }
    if (errno == EAGAIN) {
      pollfd waiter{STDOUT_FILENO, POLLOUT, 0};
      ::poll(&waiter, 1, -1);
    } else if (errno != EINTR) {
      logLine(LogLevel::kError, "standard output could not be written: " + std::generic_category().message(errno));
      return false;
    }
  }
  return true;
}

}  // namespace stitchkit
