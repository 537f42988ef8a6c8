// Awaits the end of a process by its pidfd.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>

#include "rpc/base/unique_fd.h"

namespace stitchkit {

/// Loop thread only.
///
/// Readiness is verified before it is believed: Asio's epoll reactor (1.81) keeps the record of a descriptor that is
/// closed while its event lies in the queue, and gives the record with the event to the next descriptor that is made.
/// So a wait may end without cause, most likely when one guest ends and the next begins in the same turn of the loop;
/// Boost.Process's own wait would then block the loop in waitpid().
class ProcessWatch {
 public:
  explicit ProcessWatch(boost::asio::io_context& io);

  /// Calls `ended` once, when the process (of which this need not be the parent) has ended. Not twice on one watch.
  void start(UniqueFd pidfd, std::function<void()> ended);

  [[nodiscard]] bool started() const noexcept { return pidfd_.is_open(); }

  /// As the kernel says now; `ended` may not have been called yet.
  [[nodiscard]] bool ended() noexcept;

  /// SIGKILL. Without effect once the process has ended.
  void kill() noexcept;

 private:
  void arm(std::function<void()> ended);

  boost::asio::posix::stream_descriptor pidfd_;
};

}  // namespace stitchkit
