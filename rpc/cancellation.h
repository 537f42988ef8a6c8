// How a handler learns that its request was cancelled.
#pragma once

#include <functional>
#include <stop_token>
#include <utility>

namespace stitchkit {

/// Shared by the peer and one request's handler. Loop-thread only, but for the tokens that it gives away.
class Cancellation {
 public:
  /// Long work on a worker looks at this between steps.
  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }
  [[nodiscard]] bool cancelled() const { return source_.stop_requested(); }

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
    if (source_.request_stop() && action_) {
      std::exchange(action_, nullptr)();
    }
  }

  /// The request was answered: the action is let go.
  void clear() { action_ = nullptr; }

 private:
  std::stop_source source_;
  std::function<void()> action_;
};

}  // namespace stitchkit
