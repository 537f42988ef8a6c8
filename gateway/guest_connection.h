// One connection of a guest: a request is read, judged, called, answered, and then the next.
#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/gateway_core.h"
#include "gateway/request_fence.h"

namespace stitchkit {

/// On the gateway's thread.
class GuestConnection : public std::enable_shared_from_this<GuestConnection> {
 public:
  GuestConnection(std::shared_ptr<GatewayCore> core, boost::asio::local::stream_protocol::socket socket);

  void start();
  /// Closes at once; what is under way for it is cancelled.
  void end();
  /// Goes on after mayCall() said no.
  void resume();
  /// Between two requests, since when.
  [[nodiscard]] std::optional<GatewayClock::time_point> idleSince() const;

 private:
  enum class Phase : std::uint8_t { kReading, kHeld, kCalling, kWriting, kLingering, kEnded };

  void waitForBytes();
  void onReadable();
  void takeBytes();
  void watchGuest();
  void linger();
  void discardBytes();
  void consume(std::string_view bytes);
  bool onHeader();
  bool bodyMayGrow();
  void sendContinue();
  void beginCall();
  void refuse(const Refusal& refusal, bool keepAlive);
  void write(std::string bytes, std::function<void()> then);
  void requestDone(bool keepAlive);
  void next();
  void giveBack();
  void setDeadline(GatewayClock::time_point deadline);
  void arm();
  void onTimer();

  std::shared_ptr<GatewayCore> core_;
  boost::asio::local::stream_protocol::socket socket_;
  boost::asio::steady_timer timer_;
  Phase phase_ = Phase::kReading;
  std::unique_ptr<RequestFence> fence_ = std::make_unique<RequestFence>();
  std::optional<Admission> admission_;
  std::string unread_;    // bytes behind what was consumed
  std::string outgoing_;  // while a write waits
  std::shared_ptr<CancelSignal> signal_;  // of the call under way
  GatewayClock::time_point began_;        // the request's first byte, or the end of the one before
  GatewayClock::time_point deadline_;
  GatewayClock::time_point armedFor_;
  bool armed_ = false;
  bool waiting_ = false;     // for bytes
  bool hasSlot_ = false;
  bool guestFinished_ = false;  // it will send nothing more, but reads
  std::uint64_t heldBytes_ = 0;  // of the budget for bodies
  bool waitsForBudget_ = false;
  std::size_t discarded_ = 0;
};

}  // namespace stitchkit
