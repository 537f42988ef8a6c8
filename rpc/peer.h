// One end of the conversation: messages to calls and calls to messages, in both directions.
//
// Loop-thread only, but for the replies that it hands to handlers. It knows no method's name; `$/cancelRequest` is part
// of the protocol itself.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rpc/frame_decoder.h"
#include "rpc/loop.h"
#include "rpc/message.h"
#include "rpc/method_table.h"
#include "rpc/queue_state.h"
#include "rpc/request_log.h"

namespace stitchkit {

/// Where whole messages go. Each call writes one message.
class MessageSink {
 public:
  virtual ~MessageSink() = default;
  virtual void send(std::string text) = 0;
};

struct PeerOptions {
  bool serial = false;  ///< one request after another, in the order of arrival
};

class Peer : public std::enable_shared_from_this<Peer> {
 public:
  using CallResult = std::function<void(Result<boost::json::value>)>;

  Peer(Loop& loop, MessageSink& sink, const MethodTable& methods, PeerOptions options);
  ~Peer();

  /// What the frame decoder found, in order.
  void onFrame(FrameEvent event);

  /// A request to the host, with an id of our own. `done` is called exactly once, on the loop thread: with the host's
  /// result, with the host's error (its name in `reason` when it has one), or with SANDBOX_UNAVAILABLE when the host is
  /// gone or never answers because the conversation ends.
  /// @return the call's name for forgetCall().
  std::string callHost(std::string_view method, const boost::json::object& params, CallResult done);
  /// Nobody waits for the answer any more: `done` is dropped, the host is told (`$/cancelRequest`), and an answer is
  /// ignored.
  void forgetCall(const std::string& call);
  /// Requests to the host that wait for an answer.
  [[nodiscard]] std::size_t callsToHost() const { return outgoing_.size(); }
  void notifyHost(std::string_view method, const boost::json::object& params);

  /// Nothing more will be read from the host: requests to it end now, and further ones at once.
  void answersEnded();

  /// `idle` runs as soon as no request is in flight (perhaps at once).
  void whenIdle(std::function<void()> idle);
  [[nodiscard]] std::size_t inFlight() const { return inFlight_.size() + anonymous_.size(); }
  /// Requests in flight.
  [[nodiscard]] QueueState requests() const;
  [[nodiscard]] const RequestLog& log() const { return log_; }
  /// Cancels what is in flight, starts nothing more and reads nothing more; for a host that is gone.
  void abandon();

 private:
  struct Batch;
  struct Pending;
  struct Queued;

  void onMessage(Message message, const std::shared_ptr<Batch>& batch);
  void onRequest(RequestMessage request, const std::shared_ptr<Batch>& batch);
  void onResponse(ResponseMessage response);
  bool failCall(const RequestId& id);
  void onCancelNotification(boost::json::value params);
  void admit(RequestMessage request, const std::shared_ptr<Batch>& batch);
  void start(RequestMessage request, std::shared_ptr<Pending> pending);
  void startNextQueued();
  void finishUnstarted(const std::shared_ptr<Pending>& pending);
  void finish(const std::shared_ptr<Pending>& pending, std::string text);
  JsonReply replyFor(const std::shared_ptr<Pending>& pending);
  void refuse(RequestId id, const Error& error, const std::shared_ptr<Batch>& batch, const RequestLabel& label = {});
  void closeBatch(const std::shared_ptr<Batch>& batch);
  void checkIdle();

  Loop& loop_;
  MessageSink& sink_;
  const MethodTable& methods_;
  PeerOptions options_;
  std::unordered_map<std::string, std::shared_ptr<Pending>> inFlight_;  // by the JSON text of the id
  std::unordered_set<std::shared_ptr<Pending>> anonymous_;  // without an id to find them by: notifications and id null
  std::deque<Queued> queued_;                               // serial only: admitted, not started
  bool serialBusy_ = false;
  RequestLog log_;
  HighWater mostInFlight_;
  std::unordered_map<std::string, CallResult> outgoing_;
  std::uint64_t nextCall_ = 0;
  bool answersEnded_ = false;
  bool abandoned_ = false;
  std::vector<std::function<void()>> idleActions_;
};

}  // namespace stitchkit
