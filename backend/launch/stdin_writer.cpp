#include "backend/launch/stdin_writer.h"

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <utility>

namespace stitchkit {

StdinWriter::StdinWriter(boost::asio::io_context& io, UniqueFd writeEnd, std::string bytes)
    : pipe_(io, writeEnd.release()), bytes_(std::move(bytes)) {
  pipe_.non_blocking(true);
}

void StdinWriter::start(std::shared_ptr<void> keep) {
  if (!pipe_.is_open()) {
    return;
  }
  if (!writeSome()) {
    close();
    return;
  }
  pipe_.async_wait(boost::asio::posix::descriptor_base::wait_write,
                   [this, keep = std::move(keep)](boost::system::error_code error) {
                     if (!error) {
                       start(keep);
                     }
                   });
}

// False when there is no more to do: all is written, or nobody reads (EPIPE).
bool StdinWriter::writeSome() {
  while (written_ < bytes_.size()) {
    const ssize_t count = ::write(pipe_.native_handle(), bytes_.data() + written_, bytes_.size() - written_);
    if (count >= 0) {
      written_ += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      return true;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return false;
}

void StdinWriter::close() {
  boost::system::error_code ignored;
  pipe_.close(ignored);
  bytes_ = {};
}

}  // namespace stitchkit
