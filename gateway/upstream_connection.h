// One connection to an upstream, plain or TLS. Every wait ends with the deadline or the signal.
#pragma once

#include <memory>
#include <string_view>

#include "gateway/cancel_signal.h"
#include "gateway/name_lookup.h"
#include "gateway/origin.h"
#include "gateway/tls.h"
#include "rpc/base/unique_fd.h"

namespace stitchkit {

/// How to reach upstreams; the same for all handles. Outlives what is made with it; thread-safe.
struct UpstreamSettings {
  LookupFunction lookup = systemLookup;
  bool privateNames = false;  ///< --private-origins
  TlsContext& tls;
};

/// One thread at a time.
class UpstreamConnection {
 public:
  /// Dials the origin's addresses in turn and, for https, shakes hands. kInternal, kNetworkDenied, kLimit, kCancelled.
  static Result<std::unique_ptr<UpstreamConnection>> open(const Origin& origin, const UpstreamSettings& settings,
                                                          const CancelSignal& signal, GatewayClock::time_point deadline);

  UpstreamConnection(UniqueFd socket, SslPtr ssl) : socket_(std::move(socket)), ssl_(std::move(ssl)) {}

  /// All of the bytes.
  Result<void> write(std::string_view bytes, const CancelSignal& signal, GatewayClock::time_point deadline);
  /// Some bytes; 0 at the end of the stream. Under TLS an end without a farewell is kInternal, since it could be an
  /// attacker's.
  Result<std::size_t> read(char* buffer, std::size_t size, const CancelSignal& signal, GatewayClock::time_point deadline);
  /// Nothing came unasked, not even the end: another request may go out.
  [[nodiscard]] bool quiet() const;
  [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

 private:
  Result<void> shakeHands(const CancelSignal& signal, GatewayClock::time_point deadline);
  Result<void> waitForTls(int result, const char* what, const CancelSignal& signal, GatewayClock::time_point deadline);

  UniqueFd socket_;
  SslPtr ssl_;  // null for plain TCP
};

}  // namespace stitchkit
