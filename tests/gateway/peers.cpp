#include "tests/gateway/peers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "gateway/header_fields.h"

namespace stitchkit::testing {
namespace {

int must(int result, const char* what) {
  if (result < 0) {
    throw std::system_error(errno, std::generic_category(), what);
  }
  return result;
}

bool isReady(int fd, short events, int withinMs) {
  pollfd polled{fd, events, 0};
  return must(::poll(&polled, 1, withinMs), "poll") == 1;
}

void awaitReady(int fd, short events) {
  if (!isReady(fd, events, kPatienceMs)) {
    throw std::runtime_error("nothing happened on a test's connection");
  }
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// How long the body is that follows this header block.
std::size_t lengthIn(const std::string& block) {
  const std::string folded = lowerCaseAscii(block);
  const std::size_t at = folded.find("\r\ncontent-length: ");
  return at == std::string::npos ? 0 : std::stoul(folded.substr(at + 18));
}

}  // namespace

Wire::Wire(UniqueFd socket) : socket_(std::move(socket)) {
  timeval patience{kPatienceMs / 1000, 0};
  must(::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), "patience");
  must(::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience), "patience");
}

void Wire::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ssl_ ? ::SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()))
                           : ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      throw std::runtime_error("a test's connection takes no more");
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::size_t Wire::sendSome(std::string_view bytes) {
  std::size_t all = 0;
  while (all < bytes.size()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data() + all, bytes.size() - all, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      break;
    }
    all += static_cast<std::size_t>(sent);
  }
  return all;
}

bool Wire::more() {
  std::array<char, 65536> part;
  if (ssl_) {
    const int got = ::SSL_read(ssl_.get(), part.data(), static_cast<int>(part.size()));
    bytes_.append(part.data(), static_cast<std::size_t>(std::max(got, 0)));
    return got > 0;
  }
  awaitReady(socket_.get(), POLLIN);
  const ssize_t got = ::recv(socket_.get(), part.data(), part.size(), 0);
  if (got < 0 && errno != ECONNRESET) {
    throw std::system_error(errno, std::generic_category(), "recv");
  }
  bytes_.append(part.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return got > 0;
}

std::string Wire::readUntil(std::string_view end) {
  std::size_t at = 0;
  while ((at = bytes_.find(end)) == std::string::npos) {
    if (!more()) {
      throw std::runtime_error("the connection ended after: " + bytes_.substr(0, 500));
    }
  }
  return readExactly(at + end.size());
}

std::string Wire::readExactly(std::size_t size) {
  while (bytes_.size() < size) {
    if (!more()) {
      throw std::runtime_error("the connection ended after: " + bytes_.substr(0, 500));
    }
  }
  std::string piece = bytes_.substr(0, size);
  bytes_.erase(0, size);
  return piece;
}

std::string Wire::readWhile(std::size_t most, int quietMs) {
  while (bytes_.size() < most && isReady(socket_.get(), POLLIN, quietMs) && more()) {
  }
  return readExactly(std::min(most, bytes_.size()));
}

std::string Wire::readMessage() {
  std::string block = readUntil("\r\n\r\n");
  return block + readExactly(lengthIn(block));
}

std::string Wire::readToEnd() {
  while (more()) {
  }
  return std::exchange(bytes_, {});
}

bool Wire::readable(int withinMs) const {
  return !bytes_.empty() || isReady(socket_.get(), POLLIN, withinMs);
}

bool Wire::writable(int withinMs) const {
  return isReady(socket_.get(), POLLOUT, withinMs);
}

void Wire::expectEnd() {
  if (const std::string rest = readToEnd(); !rest.empty()) {
    throw std::runtime_error("instead of its end came: " + rest.substr(0, 500));
  }
}

void Wire::finishWriting() {
  if (ssl_) {
    ::SSL_shutdown(ssl_.get());
    return;
  }
  must(::shutdown(socket_.get(), SHUT_WR), "shutdown");
}

void Wire::reset() {
  const linger abrupt{1, 0};
  must(::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt), "linger");
  close();
}

void Wire::close() {
  ssl_.reset();
  socket_.reset();
}

bool Wire::startTls(SSL_CTX* context) {
  ssl_.reset(::SSL_new(context));
  return ssl_ && ::SSL_set_fd(ssl_.get(), socket_.get()) == 1 && ::SSL_accept(ssl_.get()) == 1;
}

std::string Wire::serverName() const {
  const char* name = ::SSL_get_servername(ssl_.get(), TLSEXT_NAMETYPE_host_name);
  return name == nullptr ? "" : name;
}

Doorway::Doorway(int backlog) : listener_(must(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")) {
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  must(::bind(listener_.get(), any, sizeof address), "bind");
  must(::listen(listener_.get(), backlog), "listen");
  must(::getsockname(listener_.get(), any, &size), "getsockname");
  port_ = ntohs(address.sin_port);
}

Wire Doorway::accept() {
  awaitReady(listener_.get(), POLLIN);
  return Wire(UniqueFd(must(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC), "accept")));
}

bool Doorway::knocked(int withinMs) const {
  return isReady(listener_.get(), POLLIN, withinMs);
}

BlackHole::BlackHole() : doorway_(0) {
  const sockaddr_in address = loopback(doorway_.port());
  // The first that is left waiting shows that the queue is full.
  for (bool full = false; !full;) {
    UniqueFd one(must(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket"));
    [[maybe_unused]] const int begun =
        ::connect(one.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    full = !isReady(one.get(), POLLOUT, 200);
    queued_.push_back(std::move(one));
  }
}

std::uint16_t closedPort() {
  return Doorway().port();
}

std::pair<Wire, UniqueFd> guestWire() {
  std::array<int, 2> ends{};
  must(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), "socketpair");
  return {Wire(UniqueFd(ends[0])), UniqueFd(ends[1])};
}

Wire connectToUnix(const std::string& path) {
  UniqueFd socket(must(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  must(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), "connect");
  return Wire(std::move(socket));
}

bool becomesTrue(const std::function<bool()>& condition, int withinMs) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(withinMs);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

std::string okResponse(std::string_view body, std::string_view lines) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + std::string(lines) + "\r\n" +
         std::string(body);
}

}  // namespace stitchkit::testing
