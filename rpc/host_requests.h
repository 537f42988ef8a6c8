// Requests to the host that a thread waits for.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "rpc/base/error.h"
#include "rpc/loop.h"

namespace stitchkit {

/// Thread-safe; must outlive every call of ask().
class HostRequests {
 public:
  using Answer = std::function<void(Result<boost::json::value>)>;
  /// Sends a request and calls `answer` at most once; on the loop thread. What it returns is called, there too, when
  /// nobody waits any more.
  using Send =
      std::function<std::function<void()>(std::string_view method, const boost::json::object& params, Answer answer)>;

  HostRequests(Loop& loop, Send send, std::chrono::milliseconds timeout)
      : loop_(loop), send_(std::move(send)), timeout_(timeout) {}

  /// Blocks the caller, who is not the loop thread, until the host has answered. kUnavailable when it does not within
  /// the timeout (a later answer is ignored) or is gone, kCancelled when `stop` is requested first, else what Send
  /// says.
  Result<boost::json::value> ask(std::string method, boost::json::object params, const std::stop_token& stop) const;

 private:
  Loop& loop_;
  Send send_;
  std::chrono::milliseconds timeout_;
};

}  // namespace stitchkit
