#include "conformance/upstream_stream.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>

namespace conformance {
namespace {

constexpr std::size_t kStreamBlock = 65536;

/// Bytes that wait in the socket of the peer, which is one of this machine; 0 when it is gone.
unsigned long waitingAtPeer(int socket) {
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) != 0 || peer.sin_family != AF_INET) {
    return 0;
  }
  std::ostringstream wanted;
  wanted.setf(std::ios::hex, std::ios::basefield);
  wanted.setf(std::ios::uppercase);
  wanted.fill('0');
  wanted.width(8);
  wanted << peer.sin_addr.s_addr << ":";
  wanted.width(4);
  wanted << ntohs(peer.sin_port);
  std::ifstream table("/proc/net/tcp");
  std::string number;
  std::string local;
  std::string remote;
  std::string state;
  std::string queues;
  std::string line;
  while (std::getline(table, line)) {
    std::istringstream(line) >> number >> local >> remote >> state >> queues;
    if (local == wanted.str() && queues.size() > 9) {
      return std::stoul(queues.substr(9), nullptr, 16);
    }
  }
  return 0;
}

template <std::size_t count>
void pollAll(std::array<pollfd, count>& watched) {
  while (::poll(watched.data(), watched.size(), -1) < 0 && errno == EINTR) {
  }
}

}  // namespace

UpstreamStream::UpstreamStream(Descriptor socket, SSL_CTX* context, const Event& stop)
    : socket_(std::move(socket)), stop_(stop) {
  if (context != nullptr) {
    tls_ = ::SSL_new(context);
    ::SSL_set_fd(tls_, socket_.get());
  }
}

UpstreamStream::~UpstreamStream() {
  ::SSL_free(tls_);
}

bool UpstreamStream::await(short events) {
  std::array<pollfd, 2> watched = {{{socket_.get(), events, 0}, {stop_.descriptor(), POLLIN, 0}}};
  waiting_ = events == POLLIN;
  pollAll(watched);
  waiting_ = false;
  return watched[1].revents == 0;
}

bool UpstreamStream::idle() const {
  int unread = 0;
  return hanging_ || (waiting_ && ::ioctl(socket_.get(), FIONREAD, &unread) == 0 && unread == 0);
}

bool UpstreamStream::awaitTls(int result) {
  const int error = ::SSL_get_error(tls_, result);
  return (error == SSL_ERROR_WANT_READ && await(POLLIN)) || (error == SSL_ERROR_WANT_WRITE && await(POLLOUT));
}

bool UpstreamStream::open() {
  for (;;) {
    const int result = tls_ == nullptr ? 1 : ::SSL_accept(tls_);
    if (result == 1) {
      return true;
    }
    if (!awaitTls(result)) {
      return false;
    }
  }
}

bool UpstreamStream::read(std::string& bytes) {
  std::array<char, kStreamBlock> block{};
  for (;;) {
    const auto count = tls_ == nullptr ? ::recv(socket_.get(), block.data(), block.size(), 0)
                                       : ::SSL_read(tls_, block.data(), static_cast<int>(block.size()));
    if (count > 0) {
      bytes.append(block.data(), static_cast<std::size_t>(count));
      return true;
    }
    const bool mayCome = tls_ == nullptr ? count < 0 && (errno == EAGAIN || errno == EINTR) && await(POLLIN)
                                         : awaitTls(static_cast<int>(count));
    if (!mayCome) {
      return false;
    }
  }
}

bool UpstreamStream::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = tls_ == nullptr ? ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL)
                                       : ::SSL_write(tls_, bytes.data(), static_cast<int>(bytes.size()));
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    const bool mayGo = tls_ == nullptr ? count < 0 && (errno == EAGAIN || errno == EINTR) && await(POLLOUT)
                                       : awaitTls(static_cast<int>(count));
    if (!mayGo) {
      return false;
    }
  }
  return true;
}

bool UpstreamStream::awaitTaken() {
  for (;;) {
    int unsent = 0;
    if (::ioctl(socket_.get(), SIOCOUTQ, &unsent) != 0) {
      return false;
    }
    if (unsent == 0 && waitingAtPeer(socket_.get()) == 0) {
      return true;
    }
    std::array<pollfd, 2> watched = {{{socket_.get(), 0, 0}, {stop_.descriptor(), POLLIN, 0}}};
    if (::poll(watched.data(), watched.size(), 1) > 0) {
      return false;
    }
  }
}

bool UpstreamStream::awaitEvent(const Event& event) {
  std::array<pollfd, 3> watched = {
      {{socket_.get(), POLLRDHUP, 0}, {stop_.descriptor(), POLLIN, 0}, {event.descriptor(), POLLIN, 0}}};
  hanging_ = true;
  pollAll(watched);
  hanging_ = false;
  return watched[2].revents != 0 && watched[1].revents == 0;
}

void UpstreamStream::reset() {
  const linger now{1, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

void UpstreamStream::close() {
  if (tls_ != nullptr) {
    (void)::SSL_shutdown(tls_);
  }
}

}  // namespace conformance
