// The two ends that a gateway stands between, played by a test from one thread: nothing happens that it does not do.
//
// Every wait has a ceiling, and throws there.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rpc/base/unique_fd.h"

namespace stitchkit::testing {

/// A connection: blocking for the test, plain or TLS.
class Wire {
 public:
  explicit Wire(UniqueFd socket);

  void send(std::string_view bytes);
  /// As much as the other end takes without waiting.
  std::size_t sendSome(std::string_view bytes);
  /// Everything up to and with `end`.
  std::string readUntil(std::string_view end);
  std::string readExactly(std::size_t bytes);
  /// What comes until nothing more does for so long, at most so much.
  std::string readWhile(std::size_t most, int quietMs);
  /// A message: header block, and the body by its content-length. Names and values as they came.
  std::string readMessage();
  /// All until the other end finishes.
  std::string readToEnd();
  /// Bytes, or the end, are there.
  [[nodiscard]] bool readable(int withinMs = 0) const;
  /// The other end takes some.
  [[nodiscard]] bool writable(int withinMs) const;
  /// The other end has closed or reset it: throws when it sends something first.
  void expectEnd();
  /// Under TLS a farewell.
  void finishWriting();
  void reset();  ///< closes with RST
  void close();
  [[nodiscard]] int fd() const { return socket_.get(); }

  /// Shakes hands as a server. @return false when that fails, as it does when a client does not trust.
  bool startTls(SSL_CTX* context);
  /// The name that the client asked for in TLS; "" for none.
  [[nodiscard]] std::string serverName() const;

 private:
  struct FreeSsl {
    void operator()(SSL* ssl) const { ::SSL_free(ssl); }
  };

  bool more();  // false at the end

  UniqueFd socket_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
  std::string bytes_;  // read and not asked for yet
};

/// A listening socket on 127.0.0.1.
class Doorway {
 public:
  explicit Doorway(int backlog = 64);

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] std::string origin() const { return "http://" + host(); }

  Wire accept();
  /// Somebody waits to be let in.
  [[nodiscard]] bool knocked(int withinMs = 0) const;
  void close() { listener_.reset(); }

 private:
  UniqueFd listener_;
  std::uint16_t port_ = 0;
};

/// An address that does not answer: its queue is full, so that the kernel drops what comes.
class BlackHole {
 public:
  BlackHole();
  [[nodiscard]] std::uint16_t port() const { return doorway_.port(); }
  [[nodiscard]] std::string origin() const { return doorway_.origin(); }

 private:
  Doorway doorway_;
  std::vector<UniqueFd> queued_;
};

/// A port of 127.0.0.1 that nobody listens on.
std::uint16_t closedPort();

/// A connection of a guest, and its other end.
std::pair<Wire, UniqueFd> guestWire();
/// Connected to a Unix socket.
Wire connectToUnix(const std::string& path);

/// Ceiling of every wait, in milliseconds.
inline constexpr int kPatienceMs = 20000;

/// Asks again and again; for what no descriptor tells of. @return whether it came true.
bool becomesTrue(const std::function<bool()>& condition, int withinMs = kPatienceMs);

std::string okResponse(std::string_view body, std::string_view lines = "");

}  // namespace stitchkit::testing
