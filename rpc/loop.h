// The one thread that owns the peer, the tables and every guest's start.
#pragma once

#include <functional>

namespace stitchkit {

class Loop {
 public:
  virtual ~Loop() = default;
  /// Runs `task` on the loop thread, after the one that is running. Thread-safe.
  virtual void post(std::function<void()> task) = 0;
  /// Whether the caller is on the loop thread.
  [[nodiscard]] virtual bool onLoop() const = 0;
};

}  // namespace stitchkit
