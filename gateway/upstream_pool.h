// Connections to upstreams that wait for the next request of the same handle.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "gateway/upstream_connection.h"

namespace stitchkit {

/// Thread-safe.
class UpstreamPool {
 public:
  /// One that is still good, or null.
  std::unique_ptr<UpstreamConnection> take(const Origin& origin);
  /// Keeps it, unless there are many or the pool was cleared since `generation`.
  void put(const Origin& origin, std::unique_ptr<UpstreamConnection> connection, std::uint64_t generation);
  [[nodiscard]] std::uint64_t generation();
  /// Closes what has waited too long. @return whether any is left.
  bool dropStale();
  /// Closes all; those in use are closed when they come back.
  void clear();

 private:
  struct Idle {
    Origin origin;
    std::unique_ptr<UpstreamConnection> connection;
    GatewayClock::time_point since;
  };

  std::mutex mutex_;
  std::vector<Idle> idle_;  // guarded by mutex_, oldest first
  std::uint64_t generation_ = 0;
};

}  // namespace stitchkit
