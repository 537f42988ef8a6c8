#include "rpc/stdio_transport.h"

#include <boost/asio/post.hpp>

#include <poll.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "rpc/base/limits.h"
#include "rpc/base/log.h"

namespace stitchkit {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t kReadBytes = 256UL * 1024;
constexpr std::size_t kMaxPieces = 64;  // messages in one writev

}  // namespace

StdioTransport::StdioTransport(asio::io_context& context, Stdio stdio, Framing framing, std::size_t maxMessageBytes)
    : context_(context),
      decoder_(framing, maxMessageBytes),
      input_(context),
      output_(context),
      readBuffer_(kReadBytes) {
  if (stdio.input.pollable) {
    input_.assign(stdio.input.fd.release());
  } else {
    inputFile_ = std::move(stdio.input.fd);
  }
  if (stdio.output.pollable) {
    output_.assign(stdio.output.fd.release());
    output_.non_blocking(true);
  } else {
    outputFile_ = std::move(stdio.output.fd);
  }
  if (input_.is_open()) {
    input_.non_blocking(true);
  }
}

void StdioTransport::start(Events events) {
  events_ = std::move(events);
  if (output_.is_open()) {
    watchOutput();
  } else if (!outputFile_) {
    asio::post(context_, [this] { outputGone(); });
  }
  setReading(true);
}

void StdioTransport::setReading(bool reading) {
  if (std::exchange(reading_, reading) != reading && reading) {
    waitReadable();
  }
}

void StdioTransport::waitReadable() {
  if (!reading_ || readWaiting_ || inputEnded_) {
    return;
  }
  readWaiting_ = true;
  if (input_.is_open()) {
    input_.async_wait(asio::posix::descriptor_base::wait_read, [this](error_code ec) {
      readWaiting_ = false;
      if (!ec) {
        readSome();
      }
    });
  } else {
    asio::post(context_, [this] {
      readWaiting_ = false;
      readSome();
    });
  }
}

// One read a wake-up: other work of the loop gets its turn between two chunks of a host that never stops sending.
void StdioTransport::readSome() {
  if (!reading_) {
    return;
  }
  const int fd = input_.is_open() ? input_.native_handle() : inputFile_.get();
  const ssize_t count = ::read(fd, readBuffer_.data(), readBuffer_.size());
  if (count > 0) {
    deliver({readBuffer_.data(), static_cast<std::size_t>(count)});
  } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    endInput();
    return;
  }
  waitReadable();
}

void StdioTransport::deliver(std::string_view bytes) {
  decoder_.feed(bytes, frames_);
  for (FrameEvent& frame : frames_) {
    events_.onFrame(std::move(frame));
  }
  frames_.clear();
}

void StdioTransport::endInput() {
  inputEnded_ = true;
  decoder_.end(frames_);
  for (FrameEvent& frame : frames_) {
    events_.onFrame(std::move(frame));
  }
  frames_.clear();
  events_.onInputEnd();
}

// The kernel reports a hang-up of the reading side without being asked to write.
void StdioTransport::watchOutput() {
  output_.async_wait(asio::posix::descriptor_base::wait_error, [this](error_code ec) {
    if (ec) {
      return;
    }
    pollfd end{output_.native_handle(), 0, 0};
    if (::poll(&end, 1, 0) == 1 && (end.revents & (POLLERR | POLLHUP)) != 0) {
      outputGone();
    } else {
      watchOutput();  // Asio's word alone is not believed
    }
  });
}

void StdioTransport::send(std::string text) {
  if (outputGone_) {
    return;
  }
  if (decoder_.framing() == Framing::kHeaders) {
    queue_.push_back("Content-Length: " + std::to_string(text.size()) + "\r\n\r\n");
    unsentBytes_ += queue_.back().size();
  } else {
    text.push_back('\n');
  }
  unsentBytes_ += text.size();
  queue_.push_back(std::move(text));
  mostUnsent_.see(unsentBytes_);
  if (!congested_ && unsentBytes_ > limits::kUnsentBytes) {
    congested_ = true;
    events_.onCongestion(true);
  }
  waitWritable();
}

QueueState StdioTransport::unsentBytes() const {
  return {unsentBytes_, mostUnsent_.value(), limits::kUnsentBytes};
}

// Writing happens after the current handler, so that answers made in one go leave in one call.
void StdioTransport::waitWritable() {
  if (writeWaiting_ || queue_.empty() || outputGone_) {
    return;
  }
  writeWaiting_ = true;
  asio::post(context_, [this] {
    writeWaiting_ = false;
    writeSome();
  });
}

void StdioTransport::writeSome() {
  const int fd = output_.is_open() ? output_.native_handle() : outputFile_.get();
  while (!queue_.empty() && !outputGone_) {
    iovec pieces[kMaxPieces];
    std::size_t count = 0;
    for (auto text = queue_.begin(); text != queue_.end() && count < kMaxPieces; ++text, ++count) {
      const std::size_t skip = count == 0 ? frontWritten_ : 0;
      pieces[count] = {text->data() + skip, text->size() - skip};
    }
    const ssize_t written = ::writev(fd, pieces, static_cast<int>(count));
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0 && errno == EAGAIN && output_.is_open()) {
      writeWaiting_ = true;
      output_.async_wait(asio::posix::descriptor_base::wait_write, [this](error_code ec) {
        writeWaiting_ = false;
        if (!ec) {
          writeSome();
        }
      });
      break;
    }
    if (written < 0) {
      outputGone();
      return;
    }
    unsentBytes_ -= static_cast<std::size_t>(written);
    frontWritten_ += static_cast<std::size_t>(written);
    while (!queue_.empty() && frontWritten_ >= queue_.front().size()) {
      frontWritten_ -= queue_.front().size();
      queue_.pop_front();
    }
  }
  checkDrained();
}

void StdioTransport::checkDrained() {
  if (congested_ && unsentBytes_ <= limits::kUnsentBytes / 2) {
    congested_ = false;
    events_.onCongestion(false);
  }
  if (queue_.empty() && flushed_) {
    std::exchange(flushed_, nullptr)();
  }
}

void StdioTransport::outputGone() {
  if (std::exchange(outputGone_, true)) {
    return;
  }
  queue_.clear();
  frontWritten_ = 0;
  unsentBytes_ = 0;
  checkDrained();
  events_.onOutputGone();
}

void StdioTransport::whenFlushed(std::function<void()> done) {
  flushed_ = std::move(done);
  if (queue_.empty()) {
    checkDrained();
  }
}

}  // namespace stitchkit
