// How many connections of guests a handle's gateway may keep, so that all together leave descriptors for everything
// else.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "rpc/base/limits.h"

namespace stitchkit {

/// Thread-safe.
class ConnectionPlaces {
 public:
  /// @param descriptors that the process may have.
  explicit ConnectionPlaces(std::size_t descriptors) : shared_(descriptors / kShareOfDescriptors) {}

  void handleOpened() noexcept { ++handles_; }
  void handleClosed() noexcept { --handles_; }
  [[nodiscard]] std::size_t perHandle() const noexcept {
    return std::clamp(shared_ / std::max<std::size_t>(handles_, 1), kFewest, limits::kGatewayConnections);
  }

 private:
  // Handles that came early may hold what was theirs then: the first the whole, the second half of it, and so on.
  static constexpr std::size_t kShareOfDescriptors = 8;
  static constexpr std::size_t kFewest = 8;

  std::size_t shared_;
  std::atomic<std::size_t> handles_{0};
};

}  // namespace stitchkit
