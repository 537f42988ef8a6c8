// Ends what another thread waits for.
#pragma once

#include <atomic>
#include <chrono>

#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

namespace stitchkit {

using GatewayClock = std::chrono::steady_clock;

/// Once cancelled, always cancelled. Thread-safe.
class CancelSignal {
 public:
  /// kInternal when there are no descriptors left.
  Result<void> open();
  void cancel() noexcept;
  [[nodiscard]] bool cancelled() const noexcept { return cancelled_.load(); }

  /// Waits until `fd` is ready for `events` (POLLIN, POLLOUT); a negative `fd` only for the others.
  /// @return kCancelled, kLimit with reason `deadline`, kInternal.
  [[nodiscard]] Result<void> wait(int fd, short events, GatewayClock::time_point deadline) const;

 private:
  std::atomic<bool> cancelled_{false};
  UniqueFd event_;
};

}  // namespace stitchkit
