// How a handler learns that its request was cancelled.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

namespace stitchkit {

/// Shared by the peer and one request's handler. The flag may be read from any thread; the rest is loop-thread only.
class Cancellation {
 public:
  /// Long work on a worker looks at this between steps.
  [[nodiscard]] const std::atomic<bool>& flag() const { return cancelled_; }
  [[nodiscard]] bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  /// Called once when the request is cancelled; at once when it already was. One action a request.
  void onCancel(std::function<void()> action) {
    if (cancelled()) {
      action();
    } else {
      action_ = std::move(action);
    }
  }

  /// By the peer.
  void cancel() {
    if (!cancelled_.exchange(true) && action_) {
      std::exchange(action_, nullptr)();
    }
  }

  /// The request was answered: the action is let go.
  void clear() { action_ = nullptr; }

 private:
  std::atomic<bool> cancelled_{false};
  std::function<void()> action_;
};

}  // namespace stitchkit
