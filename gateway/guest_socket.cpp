#include "gateway/guest_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <boost/asio/write.hpp>

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

GuestSocket::GuestSocket(Socket socket, Events& events) : socket_(std::move(socket)), events_(events) {
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

bool GuestSocket::hasBytes() {
  pollfd polled{socket_.native_handle(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1;
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

// A handler that does nothing once the socket was closed: its events' receiver may be gone then.
template <class F>
auto GuestSocket::whileOpen(F handler) {
  return [alive = std::weak_ptr(alive_), handler](boost::system::error_code ec, auto...) {
    if (!alive.expired()) {
      handler(ec);
    }
  };
}

GuestSocket::Sent GuestSocket::write(std::string bytes) {
  const ssize_t sent = ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  const bool failed = sent < 0 && !nothingThere();
  takeUsed();  // after the answer, which wakes the guest anyway
  if (sent == static_cast<ssize_t>(bytes.size())) {
    return Sent::kAll;
  }
  if (failed) {
    return Sent::kGuestGone;
  }
  outgoing_ = std::move(bytes);
  const std::size_t done = sent < 0 ? 0 : static_cast<std::size_t>(sent);
  boost::asio::async_write(socket_, boost::asio::buffer(outgoing_.data() + done, outgoing_.size() - done),
                           whileOpen([this](boost::system::error_code ec) {
                             outgoing_ = {};
                             ec ? events_.onGuestGone() : events_.onWritten();
                           }));
  return Sent::kLater;
}

void GuestSocket::finishWriting() {
  ::shutdown(socket_.native_handle(), SHUT_WR);
}

void GuestSocket::waitForBytes() {
  if (!std::exchange(waiting_, true)) {
    socket_.async_wait(Socket::wait_read, whileOpen([this](boost::system::error_code ec) {
                         waiting_ = false;
                         if (!ec) {
                           events_.onReadable();
                         }
                       }));
  }
}

bool GuestSocket::guestIsGone() {
  pollfd polled{socket_.native_handle(), 0, 0};
  return ::poll(&polled, 1, 0) == 1 && (polled.revents & (POLLHUP | POLLERR)) != 0;
}

void GuestSocket::waitForGuestGone() {
  if (!std::exchange(watching_, true)) {
    socket_.async_wait(Socket::wait_error, whileOpen([this](boost::system::error_code ec) {
                         watching_ = false;
                         if (guestIsGone()) {
                           events_.onGuestGone();
                         } else if (!ec) {
                           waitForGuestGone();
                         }
                       }));
  }
}

void GuestSocket::close() {
  alive_.reset();
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace stitchkit
