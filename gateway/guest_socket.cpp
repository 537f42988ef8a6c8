#include "gateway/guest_socket.h"

#include <boost/asio/write.hpp>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace stitchkit {
namespace {

bool nothingThere() {
  return errno == EAGAIN || errno == EINTR;
}

}  // namespace

GuestSocket::GuestSocket(boost::asio::local::stream_protocol::socket socket) : socket_(std::move(socket)) {
  boost::system::error_code ignored;
  socket_.non_blocking(true, ignored);
}

GuestSocket::Look GuestSocket::look(char* buffer, std::string_view& bytes) {
  const ssize_t got = ::recv(socket_.native_handle(), buffer, kLookAtOnce, MSG_PEEK);
  if (got < 0) {
    return nothingThere() ? Look::kNothing : Look::kEnd;
  }
  bytes = {buffer, static_cast<std::size_t>(got)};
  return got == 0 ? Look::kEnd : Look::kBytes;
}

void GuestSocket::takeUsed() {
  std::array<char, kLookAtOnce> buffer;
  while (used_ > 0) {
    const ssize_t got = ::recv(socket_.native_handle(), buffer.data(), std::min(used_, buffer.size()), 0);
    if (got <= 0) {
      used_ = 0;  // the guest is gone, which the next look tells
      return;
    }
    used_ -= static_cast<std::size_t>(got);
  }
}

std::size_t GuestSocket::dropBytes(bool& ended) {
  std::array<char, kLookAtOnce> buffer;
  const ssize_t got = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), 0);
  ended = got == 0 || (got < 0 && !nothingThere());
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

void GuestSocket::write(std::string bytes, std::function<void()> then, std::function<void()> failed) {
  takeUsed();
  const ssize_t sent = ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(bytes.size())) {
    then();
    return;
  }
  if (sent < 0 && !nothingThere()) {
    failed();
    return;
  }
  outgoing_ = std::move(bytes);
  const std::size_t done = sent < 0 ? 0 : static_cast<std::size_t>(sent);
  boost::asio::async_write(socket_, boost::asio::buffer(outgoing_.data() + done, outgoing_.size() - done),
                           [this, alive = std::weak_ptr(alive_), then = std::move(then), failed = std::move(failed)](
                               boost::system::error_code ec, std::size_t) {
                             if (!alive.expired()) {
                               outgoing_ = {};
                               ec ? failed() : then();
                             }
                           });
}

void GuestSocket::finishWriting() {
  ::shutdown(socket_.native_handle(), SHUT_WR);
}

void GuestSocket::onReadable(std::function<void()> handler) {
  if (!std::exchange(waiting_, true)) {
    socket_.async_wait(socket_.wait_read, [this, alive = std::weak_ptr(alive_),
                                           handler = std::move(handler)](boost::system::error_code ec) {
      if (!ec && !alive.expired()) {
        waiting_ = false;
        handler();
      }
    });
  }
}

bool GuestSocket::guestIsGone() {
  pollfd polled{socket_.native_handle(), 0, 0};
  return ::poll(&polled, 1, 0) == 1 && (polled.revents & (POLLHUP | POLLERR)) != 0;
}

void GuestSocket::onGuestGone(std::function<void()> handler) {
  if (!std::exchange(watching_, true)) {
    watch(std::move(handler));
  }
}

void GuestSocket::watch(std::function<void()> handler) {
  socket_.async_wait(socket_.wait_error, [this, alive = std::weak_ptr(alive_),
                                          handler = std::move(handler)](boost::system::error_code ec) mutable {
    if (ec || alive.expired()) {
      return;
    }
    if (guestIsGone()) {
      handler();
    } else {
      watch(std::move(handler));
    }
  });
}

void GuestSocket::close() {
  alive_.reset();
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace stitchkit
