// The gateway of one handle, on the gateway's thread: who is connected, what is under way, which policy holds.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "gateway/body_budget.h"
#include "gateway/call_threads.h"
#include "gateway/upstream_call.h"

namespace stitchkit {

class GuestConnection;

/// All on the thread of `context`.
class GatewayCore : public std::enable_shared_from_this<GatewayCore> {
 public:
  using OnFailure = std::function<void(GatewayFailure)>;

  GatewayCore(boost::asio::io_context& context, CallThreads& threads, const UpstreamSettings& settings,
              NetworkPolicy policy, OnFailure onFailure);

  /// @param listening a listening Unix socket.
  void start(UniqueFd listening);
  /// Ends every connection and every request, and answers when none is left; the new policy holds from then on.
  void setPolicy(NetworkPolicy policy, std::function<void()> done);
  /// The same, for good.
  void close(std::function<void()> done);
  /// The host does not read: no further request goes to an upstream meanwhile, since its failure would have to be told.
  void setPaused(bool paused);

  // What connections ask for.
  [[nodiscard]] boost::asio::io_context& context() { return context_; }
  [[nodiscard]] const NetworkPolicy& policy() const { return policy_; }
  [[nodiscard]] std::shared_ptr<const Redactor> redactorFor(const Rule& rule);
  [[nodiscard]] BodyBudget& bodies() { return bodies_; }
  /// One of the requests at once; false when there are too many.
  [[nodiscard]] bool takeSlot();
  void giveSlotBack();
  /// @return false while the host does not read; then `resume` is called later, if `owner` is still there.
  bool mayCall(const std::shared_ptr<GuestConnection>& owner);
  /// `done` comes on this thread.
  void call(UpstreamCall call, std::function<void(CallResult)> done);
  void tell(GatewayFailure failure) { onFailure_(std::move(failure)); }
  void remove(const std::shared_ptr<GuestConnection>& connection);

 private:
  void accept();
  void onAccept(boost::system::error_code ec, boost::asio::local::stream_protocol::socket socket);
  bool makeRoom();
  void drain(std::function<void()> drained);
  void finishDrain();
  void watchPool();

  boost::asio::io_context& context_;
  CallThreads& threads_;
  const UpstreamSettings& settings_;
  NetworkPolicy policy_;
  OnFailure onFailure_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
  boost::asio::steady_timer acceptAgain_;
  boost::asio::steady_timer poolTimer_;
  bool poolWatched_ = false;
  std::shared_ptr<UpstreamPool> pool_ = std::make_shared<UpstreamPool>();
  std::map<const Rule*, std::shared_ptr<const Redactor>> redactors_;
  std::set<std::shared_ptr<GuestConnection>> connections_;
  std::vector<std::weak_ptr<GuestConnection>> held_;  // while paused
  BodyBudget bodies_;
  std::size_t slots_ = 0;
  std::size_t calls_ = 0;
  bool paused_ = false;
  std::vector<std::function<void()>> drained_;
};

}  // namespace stitchkit
