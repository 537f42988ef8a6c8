// One request of a guest on its way to an upstream and back.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gateway/forwarding.h"
#include "gateway/name_lookups.h"
#include "gateway/served_policy.h"
#include "gateway/upstream_pool.h"

namespace stitchkit {

/// How to reach upstreams; the same for all handles, and outlives what is made with it.
struct UpstreamSettings {
  boost::asio::io_context& context;
  TlsContext& tls;
  LookupFunction lookup = systemLookup;
  bool privateNames = false;  ///< --private-origins
};

/// Why a request ended with 502, for the host: PROTOCOL.md, 6, gateway.error. No secret, nothing of the guest's.
struct GatewayFailure {
  Error error;
  std::string origin;
};

struct CallResult {
  std::string response;  ///< all bytes for the guest
  unsigned status = 0;   ///< of it
  std::size_t bodyBytes = 0;
  std::optional<GatewayFailure> failure;
};

/// On the gateway's thread. Its owner keeps it until it is done, and gives it a deadline by cancel().
class UpstreamCall : public std::enable_shared_from_this<UpstreamCall> {
 public:
  struct Parts {
    GuestRequest request;
    Admission admission;  ///< its rule belongs to `policy`
    std::shared_ptr<const ServedPolicy> policy;
    GatewayClock::time_point deadline;
    bool keepAlive = false;  ///< what the guest is told about its own connection
  };

  UpstreamCall(const UpstreamSettings& settings, std::shared_ptr<NameLookups> names, std::shared_ptr<UpstreamPool> pool,
               Parts parts);

  /// `done` is called once, perhaps before the return. An idempotent request on a kept connection that turns out to be
  /// closed is sent once more on a fresh one (RFC 9110, 9.2.2).
  void start(std::function<void(CallResult)> done);
  /// Ends it now with this failure, unless it has ended; not another byte is sent.
  void cancel(Error why);
  [[nodiscard]] const Origin& origin() const { return rule_.origin; }

 private:
  void dial();
  void dialNext();
  void stopDialling();
  void onConnected(TcpSocket socket, boost::system::error_code ec);
  void shakeHands();
  void send();
  void receive();
  void wait(TcpSocket::wait_type event, void (UpstreamCall::*next)());
  void waitForEither();
  void listen(TcpSocket::wait_type event, void (UpstreamCall::*next)(), std::uint64_t round);
  void failed(Error error);
  void answered();
  void finish(CallResult result);

  const UpstreamSettings& settings_;
  std::shared_ptr<NameLookups> names_;
  std::shared_ptr<UpstreamPool> pool_;
  Parts parts_;
  const Rule& rule_;
  UpstreamRequest request_;
  std::string bytes_;  // of the request
  std::size_t sent_ = 0;
  std::optional<Error> sendFailure_;  // an upstream may answer and close before it has read everything
  ResponseFence fence_;
  std::function<void(CallResult)> done_;
  Endpoints endpoints_;
  std::size_t nextEndpoint_ = 0;
  std::shared_ptr<TcpSocket> dialling_;
  std::optional<boost::asio::steady_timer> dialTimer_;  // while there are further addresses
  std::unique_ptr<UpstreamConnection> connection_;
  bool kept_ = false;        // the connection has served before
  std::uint64_t round_ = 0;  // of waiting: the first event of a round ends it
};

}  // namespace stitchkit
