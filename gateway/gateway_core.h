// The part of a handle's gateway that one of the gateway's threads serves: who is connected to it, what is under way,
// which policy holds.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "gateway/body_budget.h"
#include "gateway/connection_places.h"
#include "gateway/gateway_watch.h"
#include "gateway/request_slots.h"
#include "gateway/upstream_call.h"
#include "rpc/base/unique_fd.h"

namespace stitchkit {

class GuestConnection;

/// All on the thread of its settings' context.
class GatewayCore : public std::enable_shared_from_this<GatewayCore> {
 public:
  using OnFailure = std::function<void(GatewayFailure)>;

  /// @param slots, watch: the handle's; @param share of the handle's ceilings that falls to this part: one in so many.
  GatewayCore(const UpstreamSettings& settings, const ConnectionPlaces& places, std::shared_ptr<RequestSlots> slots,
              std::shared_ptr<GatewayWatch> watch, std::size_t share, NetworkPolicy policy, OnFailure onFailure);

  /// Accepts connections and deals them out.
  /// @param listening a listening Unix socket. @param parts all of the handle's, this one among them.
  void listen(UniqueFd listening, std::vector<std::weak_ptr<GatewayCore>> parts);
  /// A connection of a guest.
  void serve(UniqueFd guest);
  /// Ends every connection and every request; the new policy holds from then on.
  void setPolicy(NetworkPolicy policy);
  /// The same, for good.
  void close();
  /// The host does not read: no further request goes to an upstream meanwhile, since its failure would have to be told.
  void setPaused(bool paused);

  // What connections ask for.
  [[nodiscard]] boost::asio::io_context& context() { return settings_.context; }
  [[nodiscard]] const std::shared_ptr<const ServedPolicy>& policy() const { return policy_; }
  [[nodiscard]] BodyBudget& bodies() { return bodies_; }
  [[nodiscard]] RequestSlots& slots() { return *slots_; }
  [[nodiscard]] GatewayWatch& watch() { return *watch_; }
  /// @return false while the host does not read, or has just been told of many failures; then resume() of `owner` is
  /// called later, if it is still there.
  bool mayCall(const std::shared_ptr<GuestConnection>& owner);
  std::shared_ptr<UpstreamCall> makeCall(UpstreamCall::Parts parts);
  void tell(GatewayFailure failure);
  /// A connection to an upstream may have been kept.
  void watchPool();
  void remove(const std::shared_ptr<GuestConnection>& connection);

 private:
  void accept();
  void onAccept(boost::system::error_code ec, boost::asio::local::stream_protocol::socket socket);
  void dealOut(UniqueFd guest);
  void begin(UniqueFd guest);
  bool makeRoom();
  void lookForRoom();
  void resumeHeld();
  void allowFailures();
  [[nodiscard]] std::int64_t failureBurst() const;
  void endAll();

  const UpstreamSettings& settings_;
  const ConnectionPlaces& places_;
  std::shared_ptr<RequestSlots> slots_;
  std::shared_ptr<GatewayWatch> watch_;
  std::size_t share_;
  std::shared_ptr<const ServedPolicy> policy_;
  OnFailure onFailure_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
  boost::asio::steady_timer acceptAgain_;
  std::vector<std::weak_ptr<GatewayCore>> parts_;
  std::size_t nextPart_ = 0;
  boost::asio::steady_timer poolTimer_;
  boost::asio::steady_timer failureTimer_;
  boost::asio::steady_timer roomTimer_;
  bool lookingForRoom_ = false;
  std::deque<UniqueFd> waiting_;  // connections that found no place yet; as many as there are places
  std::shared_ptr<NameLookups> names_;
  bool poolWatched_ = false;
  std::shared_ptr<UpstreamPool> pool_ = std::make_shared<UpstreamPool>();
  std::set<std::shared_ptr<GuestConnection>> connections_;
  std::vector<std::weak_ptr<GuestConnection>> held_;  // by mayCall()
  BodyBudget bodies_;
  std::int64_t failuresLeft_;  // below 0 when requests under way failed as well
  bool failuresCounted_ = false;
  bool paused_ = false;
  bool closed_ = false;
};

}  // namespace stitchkit
