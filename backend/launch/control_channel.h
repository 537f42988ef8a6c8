// The sidecar's end of the socket to the launch helper (launch_protocol.h).
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "backend/launch/launch_helper/launch_protocol.h"
#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

namespace stitchkit {

/// One message of the helper: ready, or a report.
struct HelperMessage {
  std::optional<LaunchReport> report;  ///< nullopt: ready
  LaunchReady ready{};                 ///< when there is no report
  UniqueFd descriptor;                 ///< what came with it, close-on-exec; may be none
};

/// Loop thread only. Nothing here blocks.
class ControlChannel {
 public:
  ControlChannel(boost::asio::io_context& io, UniqueFd socket);

  /// Calls `handler(error_code)` once something can be received.
  template <class Handler>
  void asyncWait(Handler&& handler) {
    socket_.async_wait(boost::asio::posix::descriptor_base::wait_read, std::forward<Handler>(handler));
  }

  enum class Receipt : std::uint8_t { kMessage, kNothing, kEnd, kUntaken };
  /// Takes one message into `message`. kEnd: every process of the set-up has closed its end, or what came was not
  /// of the protocol. kUntaken: they have, and nobody has taken what was sent.
  Receipt receive(HelperMessage& message);

  /// `payload` travels behind the packet. Errors: kUnavailable (the helper is gone, or too many descriptors are under
  /// way).
  Result<void> send(const LaunchPacket& packet, std::string_view payload, std::span<const int> descriptors);

  /// Every holder of the other end has closed it; messages may still lie here.
  [[nodiscard]] bool hungUp() noexcept;

  /// Ends our direction: a helper that still waits for its packet exits. Messages and the end are still received.
  void endSending() noexcept;

 private:
  boost::asio::posix::stream_descriptor socket_;
};

}  // namespace stitchkit
