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

StdioStream take(int number, int accessMode) {
  StdioStream stream;
  struct stat status {};
  const bool open = ::fstat(number, &status) == 0;
  const bool reopen = open && (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode));
  if (reopen) {
    const std::string path = "/proc/self/fd/" + std::to_string(number);
    stream.fd.reset(::open(path.c_str(), accessMode | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  }
  if (!stream.fd && open) {
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
  Stdio stdio;
  stdio.input = take(STDIN_FILENO, O_RDONLY);
  stdio.output = take(STDOUT_FILENO, O_WRONLY);
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ::dup2(null.get(), STDIN_FILENO);
  if (::fcntl(STDERR_FILENO, F_GETFD) < 0) {
    ::dup2(null.get(), STDERR_FILENO);  // or the first file we open would become stderr
  }
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  return stdio;
}

}  // namespace stitchkit
