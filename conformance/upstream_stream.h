// One accepted connection of an upstream: bytes over TCP, or over TLS on it.
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <string>
#include <string_view>

#include "conformance/events.h"

namespace conformance {

/// Used by one thread, which waits in poll(2). Everything ends early when `stop` is raised.
class UpstreamStream {
 public:
  /// @param socket   connected, non-blocking
  /// @param context  null for plain TCP; outlives this object
  UpstreamStream(Descriptor socket, SSL_CTX* context, const Event& stop);
  UpstreamStream(const UpstreamStream&) = delete;
  UpstreamStream& operator=(const UpstreamStream&) = delete;
  ~UpstreamStream();

  /// The TLS handshake, if there is one.
  bool open();
  /// Appends what comes next. False at the end.
  bool read(std::string& bytes);
  bool write(std::string_view bytes);
  /// Until the peer has taken every byte out of its socket. The kernel tells no event for that.
  bool awaitTaken();
  /// False when the peer or this side ended before `event`.
  bool awaitEvent(const Event& event);
  /// The peer gets a reset instead of an end.
  void reset();
  /// A TLS end says so, as RFC 8446 demands; what only stops is a truncation.
  void close();

  /// Waits for bytes of which none has come, or for an event. From any thread.
  [[nodiscard]] bool idle() const;

 private:
  /// Waits for poll's `events`. False when stopped.
  bool await(short events);
  /// What a TLS call that did not succeed waits for, waited for. False when it failed for good.
  bool awaitTls(int result);

  Descriptor socket_;
  SSL* tls_ = nullptr;
  const Event& stop_;
  std::atomic<bool> waiting_ = false;  ///< for bytes
  std::atomic<bool> hanging_ = false;  ///< for an event
};

}  // namespace conformance
