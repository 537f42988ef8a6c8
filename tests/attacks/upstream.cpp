#include "tests/attacks/upstream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <optional>
#include <system_error>

namespace stitchkit::testing {
namespace {

/// What a connection sends, in pieces that end where they are wanted to.
class Incoming {
 public:
  explicit Incoming(int connection) : connection_(connection) {}

  /// Up to and without `end`; nullopt when the connection ended before.
  std::optional<std::string> until(std::string_view end) {
    std::size_t at = 0;
    while ((at = bytes_.find(end)) == std::string::npos) {
      if (!more()) {
        return std::nullopt;
      }
    }
    std::string piece = bytes_.substr(0, at);
    bytes_.erase(0, at + end.size());
    return piece;
  }

  std::optional<std::string> exactly(std::size_t size) {
    while (bytes_.size() < size) {
      if (!more()) {
        return std::nullopt;
      }
    }
    std::string piece = bytes_.substr(0, size);
    bytes_.erase(0, size);
    return piece;
  }

 private:
  bool more() {
    std::array<char, 65536> part;
    const ssize_t size = ::recv(connection_, part.data(), part.size(), 0);
    bytes_.append(part.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return size > 0;
  }

  int connection_;
  std::string bytes_;
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

void addHeader(UpstreamRequest& request, const std::string& line) {
  const auto colon = line.find(':');
  const auto value = colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
  request.headers.emplace(lower(line.substr(0, colon)), value == std::string::npos ? "" : line.substr(value));
}

std::optional<std::string> readBody(Incoming& incoming, const UpstreamRequest& request) {
  if (request.header("transfer-encoding").empty()) {
    const std::string length = request.header("content-length");
    return length.empty() ? "" : incoming.exactly(std::stoul(length));
  }
  std::string body;
  for (;;) {
    const auto size = incoming.until("\r\n");
    const auto chunk = size ? incoming.exactly(std::stoul(*size, nullptr, 16)) : std::nullopt;
    if (!chunk || !incoming.until("\r\n")) {
      return std::nullopt;
    }
    if (chunk->empty()) {
      return body;
    }
    body += *chunk;
  }
}

std::optional<UpstreamRequest> readRequest(Incoming& incoming) {
  const auto first = incoming.until("\r\n");
  if (!first) {
    return std::nullopt;
  }
  UpstreamRequest request;
  request.method = first->substr(0, first->find(' '));
  request.target = first->substr(request.method.size() + 1, first->rfind(' ') - request.method.size() - 1);
  for (auto line = incoming.until("\r\n");; line = incoming.until("\r\n")) {
    if (!line) {
      return std::nullopt;
    }
    if (line->empty()) {
      break;
    }
    addHeader(request, *line);
  }
  auto body = readBody(incoming, request);
  if (!body) {
    return std::nullopt;
  }
  request.body = std::move(*body);
  return request;
}

}  // namespace

std::string UpstreamRequest::header(const std::string& name) const {
  std::string all;
  const auto [first, last] = headers.equal_range(name);
  for (auto it = first; it != last; ++it) {
    all += (all.empty() ? "" : "|") + it->second;
  }
  return all;
}

Upstream::Upstream()
    : Upstream([](const UpstreamRequest&, int connection) { return sendAll(connection, response("ok")); }) {}

Upstream::Upstream(Handler handler, const char* at)
    : handler_(std::move(handler)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, at, &address.sin_addr);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_.get(), any, sizeof address) != 0 || ::listen(listener_.get(), 256) != 0 ||
      ::getsockname(listener_.get(), any, &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "upstream of the test");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept(); });
}

Upstream::~Upstream() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    for (const Connection& connection : connections_) {
      ::shutdown(connection.socket.get(), SHUT_RDWR);
    }
  }
  acceptor_.join();
  for (Connection& connection : connections_) {
    connection.thread.join();
  }
}

void Upstream::accept() {
  for (;;) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      return;
    }
    if (!socket) {
      continue;
    }
    forgetEnded();
    Connection& connection = connections_.emplace_back();
    connection.socket = std::move(socket);
    connection.thread = std::thread([this, &connection] { serve(connection); });
  }
}

// With the mutex held.
void Upstream::forgetEnded() {
  for (auto it = connections_.begin(); it != connections_.end();) {
    if (it->ended) {
      it->thread.join();
      it = connections_.erase(it);
    } else {
      ++it;
    }
  }
}

void Upstream::serve(Connection& connection) {
  Incoming incoming(connection.socket.get());
  for (bool alive = true; alive;) {
    const auto request = readRequest(incoming);
    if (request) {
      const std::lock_guard lock(mutex_);
      requests_.push_back(*request);
      arrived_.notify_all();
    }
    alive = request && handler_(*request, connection.socket.get());
  }
  // The last that this thread does: forgetEnded() waits for its end with the mutex held.
  const std::lock_guard lock(mutex_);
  ::shutdown(connection.socket.get(), SHUT_RDWR);
  connection.ended = true;
}

std::vector<UpstreamRequest> Upstream::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::size_t Upstream::count() const {
  const std::lock_guard lock(mutex_);
  return requests_.size();
}

bool Upstream::waitForCount(std::size_t least, Milliseconds within) const {
  std::unique_lock lock(mutex_);
  return arrived_.wait_for(lock, within, [&] { return requests_.size() >= least; });
}

std::size_t Upstream::open() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(connections_.begin(), connections_.end(), [](const Connection& one) { return !one.ended; }));
}

bool Upstream::allLeft() const {
  // Connections are let in in their order. One of our own that is ended has had all earlier ones before it.
  const UniqueFd own(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  char end = 0;
  return ::getsockname(listener_.get(), any, &size) == 0 && ::connect(own.get(), any, size) == 0 &&
         ::shutdown(own.get(), SHUT_WR) == 0 && ::recv(own.get(), &end, 1, 0) == 0 &&
         eventually([this] { return open() == 0; });
}

std::string response(std::string_view body, std::string_view headers, std::string_view status) {
  std::string text = "HTTP/1.1 " + std::string(status) + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
                     std::string(headers) + "\r\n";
  return text.append(body);
}

bool sendAll(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void waitForClose(int connection) {
  std::array<char, 4096> ignored;
  while (::recv(connection, ignored.data(), ignored.size(), 0) > 0) {
  }
}

}  // namespace stitchkit::testing
