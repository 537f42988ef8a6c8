// A host for tools: answers from a thread of its own, and remembers what it was asked.
#pragma once

#include "rpc/host_requests.h"
#include "tests/rpc/queue_loop.h"

#include <boost/json/serialize.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stitchkit::test {

class AnsweringHost {
 public:
  using Answer =
      std::function<Result<boost::json::value>(const std::string& method, const boost::json::object& params)>;

  explicit AnsweringHost(Answer answer) : answer_(std::move(answer)) {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      // The stop is posted too, so that this wait ends.
      loop_.runUntil([&] { return stop.stop_requested(); });
    });
  }
  ~AnsweringHost() {
    thread_.request_stop();
    loop_.post([] {});
  }

  HostRequests requests{loop_,
                        [this](std::string_view method, const boost::json::object& params, HostRequests::Answer done) {
                          asked.push_back(std::string(method) + boost::json::serialize(params));
                          done(answer_(std::string(method), params));
                          return [] {};
                        },
                        std::chrono::hours(1)};
  /// "method{params}", in order; to be read between calls only.
  std::vector<std::string> asked;

 private:
  Answer answer_;
  QueueLoop loop_;
  std::jthread thread_;
};

}  // namespace stitchkit::test
