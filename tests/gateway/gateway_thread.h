// A thread that serves what a test makes of the gateway, as GatewayThreads does.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "gateway/upstream_call.h"

namespace stitchkit::testing {

/// To be destroyed after all that lives on it.
class GatewayThread {
 public:
  explicit GatewayThread(std::string caFile = "", LookupFunction lookup = systemLookup, bool privateNames = false)
      : tls_(std::move(caFile)), settings_{context_, tls_, std::move(lookup), privateNames}, thread_([this] {
          context_.run();
        }) {}
  ~GatewayThread() {
    context_.stop();
    thread_.join();
  }
  GatewayThread(const GatewayThread&) = delete;
  GatewayThread& operator=(const GatewayThread&) = delete;

  [[nodiscard]] const UpstreamSettings& settings() const { return settings_; }

  /// Runs it on the thread; returns what it returns, when it is done.
  template <class F>
  auto run(F action) {
    std::packaged_task<decltype(action())()> task(std::move(action));
    auto result = task.get_future();
    boost::asio::post(context_, [&task] { task(); });
    return result.get();
  }

 private:
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{context_.get_executor()};
  TlsContext tls_;
  UpstreamSettings settings_;
  std::thread thread_;
};

}  // namespace stitchkit::testing
