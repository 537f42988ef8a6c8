#include "rpc/stdio.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#include <string>

namespace stitchkit {
namespace {

constexpr int kPipeBytes = 1 << 20;

bool isPollable(int fd) {
  const UniqueFd poller(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  return ::epoll_ctl(poller.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

// Whether the descriptor is open. One that is not is filled with /dev/null, or the next file we open would take its
// number. In ascending order: then open(2) gives just that number.
bool isOpenElseFill(int number) {
  const bool open = ::fcntl(number, F_GETFD) >= 0;
  if (!open) {
    [[maybe_unused]] const int filled = ::open("/dev/null", O_RDWR);
    // cppcheck-suppress resourceLeak ; it stays open
  }
  return open;
}

StdioStream take(int number, int accessMode) {
  StdioStream stream;
  struct stat status {};
  if (::fstat(number, &status) != 0) {
    return stream;
  }
  if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
    const std::string path = "/proc/self/fd/" + std::to_string(number);
    stream.fd.reset(::open(path.c_str(), accessMode | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  }
  if (!stream.fd) {
    stream.fd.reset(::fcntl(number, F_DUPFD_CLOEXEC, 3));
  }
  if (stream.fd && S_ISFIFO(status.st_mode)) {
    ::fcntl(stream.fd.get(), F_SETPIPE_SZ, kPipeBytes);  // best effort: fewer wake-ups for large messages
  }
  stream.pollable = stream.fd && isPollable(stream.fd.get());
  return stream;
}

}  // namespace

Stdio takeStdio() {
  const bool hasInput = isOpenElseFill(STDIN_FILENO);
  const bool hasOutput = isOpenElseFill(STDOUT_FILENO);
  isOpenElseFill(STDERR_FILENO);
  Stdio stdio;
  if (hasInput) {
    stdio.input = take(STDIN_FILENO, O_RDONLY);
  }
  if (hasOutput) {
    stdio.output = take(STDOUT_FILENO, O_WRONLY);
  }
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ::dup2(null.get(), STDIN_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  return stdio;
}

}  // namespace stitchkit
