// Connections to upstreams that wait for the next request of the same handle.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "gateway/origin.h"
#include "gateway/upstream_connection.h"

namespace stitchkit {

using GatewayClock = std::chrono::steady_clock;

/// On the gateway's thread.
class UpstreamPool {
 public:
  /// One that is still good, or null.
  std::unique_ptr<UpstreamConnection> take(const Origin& origin);
  /// Keeps it; with too many the one that waits longest is closed.
  void put(const Origin& origin, std::unique_ptr<UpstreamConnection> connection);
  /// Closes what has waited too long. @return whether any is left.
  bool dropStale();
  void clear() { idle_.clear(); }

 private:
  struct Idle {
    Origin origin;
    std::unique_ptr<UpstreamConnection> connection;
    GatewayClock::time_point since;
  };

  std::vector<Idle> idle_;  // oldest first
};

}  // namespace stitchkit
