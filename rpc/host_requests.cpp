#include "rpc/host_requests.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace stitchkit {
namespace {

// Shared by the thread that waits and the answer, of which either may come to its end first.
struct Waiting {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::optional<Result<boost::json::value>> answer;
  std::function<void()> forget;  // loop thread only
};

}  // namespace

Result<boost::json::value> HostRequests::ask(std::string method, boost::json::object params,
                                             const std::stop_token& stop) const {
  const auto cancelled = [] { return Error(ErrorKind::kCancelled, "The request was cancelled"); };
  if (stop.stop_requested()) {
    return cancelled();  // a long question would be sent only to be taken back
  }
  const auto waiting = std::make_shared<Waiting>();
  loop_.post([this, waiting, method = std::move(method), params = std::move(params)] {
    waiting->forget = send_(method, params, [waiting](Result<boost::json::value> answer) {
      {
        const std::lock_guard lock(waiting->mutex);
        waiting->answer = std::move(answer);
      }
      waiting->changed.notify_one();
    });
  });
  std::unique_lock lock(waiting->mutex);
  waiting->changed.wait_for(lock, stop, timeout_, [&] { return waiting->answer.has_value(); });
  if (waiting->answer) {
    return std::move(*waiting->answer);
  }
  loop_.post([waiting] { waiting->forget(); });
  if (stop.stop_requested()) {
    return cancelled();
  }
  return Error(ErrorKind::kUnavailable, "The host did not answer in time");
}

}  // namespace stitchkit
