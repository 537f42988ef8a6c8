#include "bench/line_channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <tuple>

namespace stitchkit::bench {

namespace {

constexpr std::size_t kBufferBytes = 4U * 1024 * 1024;

std::pair<UniqueFd, UniqueFd> makePair(Transport transport) {
  int fds[2];
  const int failed =
      transport == Transport::kPipes ? pipe2(fds, O_CLOEXEC) : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds);
  if (failed != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe");
  }
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

}  // namespace

LineChannel::LineChannel(Transport transport) : buffer_(kBufferBytes, '\0') {
  std::tie(childInput_, input_) = makePair(transport);
  std::tie(output_, childOutput_) = makePair(transport);
}

void LineChannel::closeChildEnds() noexcept {
  childInput_.reset();
  childOutput_.reset();
}

void LineChannel::closeInput() noexcept {
  input_.reset();
}

void LineChannel::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(input_.get(), bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "write to the child");
    }
  }
}

std::string_view LineChannel::receive() {
  std::size_t searched = begin_;
  while (true) {
    const void* newline = std::memchr(buffer_.data() + searched, '\n', end_ - searched);
    if (newline != nullptr) {
      return takeLine(static_cast<std::size_t>(static_cast<const char*>(newline) - buffer_.data()));
    }
    searched = end_;
    if (begin_ > 0 && end_ == buffer_.size()) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      searched -= begin_;
      begin_ = 0;
    }
    if (end_ == buffer_.size()) {
      buffer_.resize(buffer_.size() * 2);
    }
    const ssize_t got = read(output_.get(), buffer_.data() + end_, buffer_.size() - end_);
    if (got > 0) {
      end_ += static_cast<std::size_t>(got);
    } else if (got == 0) {
      throw std::runtime_error("the child ended its output");
    } else if (errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "read from the child");
    }
  }
}

std::string_view LineChannel::takeLine(std::size_t newline) {
  const std::string_view line(buffer_.data() + begin_, newline - begin_);
  begin_ = newline + 1;
  if (begin_ == end_) {
    begin_ = end_ = 0;
  }
  return line;
}

}  // namespace stitchkit::bench
