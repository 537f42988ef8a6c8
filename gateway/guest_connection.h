// One connection of a guest: a request is read, judged, called, answered, and then the next.
#pragma once

#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/gateway_core.h"
#include "gateway/guest_socket.h"
#include "gateway/request_fence.h"

namespace stitchkit {

/// On the thread of its core.
class GuestConnection : public std::enable_shared_from_this<GuestConnection>, private GuestSocket::Events {
 public:
  /// Its core keeps it until end().
  GuestConnection(std::shared_ptr<GatewayCore> core, GuestSocket::Socket socket);

  void start();
  /// Closes at once; what is under way for it is cancelled.
  void end() { end(GatewayOutcome::kEnded); }
  /// Goes on after mayCall() said no.
  void resume();
  /// Between two requests, with nothing of the next one in the socket; since when.
  [[nodiscard]] std::optional<GatewayClock::time_point> idleSince();

 private:
  enum class Phase : std::uint8_t {
    kReading,    ///< a request
    kHeld,       ///< its header is there, and it waits for the host, or for room for its body
    kCalling,    ///< the upstream
    kWriting,    ///< to the guest
    kLingering,  ///< the answer is out, and what still comes is dropped
    kEnded,
  };

  void onReadable() override;
  void onWritten() override;
  void onGuestGone() override { end(GatewayOutcome::kGuestGone); }

  void end(GatewayOutcome how);
  void read();
  void drop();
  bool consume(std::string_view bytes);
  bool onHeader();
  bool bodyMayGrow();
  void hold();
  void sendContinue();
  void beginCall();
  void onAnswer(CallResult result, bool keepAlive);
  void refuse(const Refusal& refusal, bool keepAlive);
  void write(std::string bytes, void (GuestConnection::*then)());
  void readOn();
  void requestDone();
  void report(GatewayOutcome outcome);
  void linger();
  void takeBytes(std::uint64_t bytes);
  void giveBack();
  void setDeadline(GatewayClock::time_point deadline);
  void arm();
  void onTimer();

  std::shared_ptr<GatewayCore> core_;
  GuestSocket socket_;
  boost::asio::steady_timer timer_;
  Phase phase_ = Phase::kReading;
  std::unique_ptr<RequestFence> fence_ = std::make_unique<RequestFence>();
  std::optional<Admission> admission_;
  std::shared_ptr<UpstreamCall> call_;  // under way
  GatewayClock::time_point began_;      // the request's first byte, or the end of the one before
  GatewayClock::time_point deadline_;
  GatewayClock::time_point armedFor_;
  bool armed_ = false;
  void (GuestConnection::*afterWrite_)() = nullptr;
  bool keepAlive_ = false;       // once the response is out
  bool asked_ = false;           // a request is under way that is to be reported
  std::string method_;           // its method, which the call takes away
  std::uint64_t bodyBytes_ = 0;  // and its body's length
  GatewayRecord answer_;         // what the guest is being answered
  bool hasSlot_ = false;
  bool watched_ = false;         // whether the guest leaves during a call
  std::uint64_t heldBytes_ = 0;  // of the budget for bodies
  std::size_t dropped_ = 0;
};

}  // namespace stitchkit
