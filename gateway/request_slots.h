// How many requests of a handle are under way.
#pragma once

#include <atomic>
#include <cstddef>

#include "rpc/base/limits.h"

namespace stitchkit {

/// Thread-safe.
class RequestSlots {
 public:
  /// One of the requests at once (PROTOCOL.md, 6); false when there are too many.
  [[nodiscard]] bool take() noexcept {
    if (taken_.fetch_add(1) < limits::kGatewayRequests) {
      return true;
    }
    --taken_;
    return false;
  }
  void giveBack() noexcept { --taken_; }

 private:
  std::atomic<std::size_t> taken_{0};
};

}  // namespace stitchkit
