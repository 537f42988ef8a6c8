// Calls to upstreams as a guest's connection makes them, without the guest.
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>

#include "gateway/upstream_call.h"
#include "tests/gateway/gateway_thread.h"
#include "tests/gateway/peers.h"

namespace stitchkit::testing {

/// A call under way.
class StartedCall {
 public:
  /// What came of it, within patience.
  CallResult result() {
    if (!endsWithin(std::chrono::milliseconds(kPatienceMs))) {
      throw std::runtime_error("a call does not end");
    }
    return future_.get();
  }
  [[nodiscard]] bool endsWithin(std::chrono::milliseconds time) const {
    return future_.wait_for(time) == std::future_status::ready;
  }
  /// How often its end was told.
  [[nodiscard]] int timesEnded() const { return *times_; }

 private:
  friend class Caller;

  std::shared_ptr<UpstreamCall> call_;
  std::future<CallResult> future_;
  std::shared_ptr<std::atomic<int>> times_ = std::make_shared<std::atomic<int>>(0);
};

/// Sends requests to the one origin of its policy, all with one pool of connections.
class Caller {
 public:
  explicit Caller(NetworkPolicy policy, LookupFunction lookup = systemLookup, std::string caFile = "")
      : policy_(std::make_shared<const ServedPolicy>(std::move(policy))),
        thread_(std::move(caFile), std::move(lookup), true) {}
  ~Caller() {
    thread_.run([this] { pool_->clear(); });
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  StartedCall start(const std::string& method, std::string body = "",
                    std::chrono::milliseconds time = std::chrono::seconds(30)) {
    const Rule& rule = policy_->policy().rules()[0];
    GuestRequest request;
    request.method = method;
    request.target = "/";
    request.fields = {{"host", rule.origin.authority()}};
    request.contentLength = body.size();
    request.body = std::move(body);
    UpstreamCall::Parts parts{std::move(request), {&rule, "/"}, policy_, GatewayClock::now() + time, true};
    StartedCall started;
    auto promise = std::make_shared<std::promise<CallResult>>();
    started.future_ = promise->get_future();
    thread_.run([&] {
      started.call_ = std::make_shared<UpstreamCall>(thread_.settings(), names_, pool_, std::move(parts));
      started.call_->start([promise, times = started.times_](CallResult result) {
        if (++*times == 1) {
          promise->set_value(std::move(result));
        }
      });
    });
    return started;
  }
  void cancel(const StartedCall& started, ErrorKind kind) {
    thread_.run([&] { started.call_->cancel(Error(kind, "the test has had enough")); });
  }
  GatewayThread& thread() { return thread_; }

 private:
  std::shared_ptr<const ServedPolicy> policy_;
  std::shared_ptr<UpstreamPool> pool_ = std::make_shared<UpstreamPool>();
  GatewayThread thread_;
  std::shared_ptr<NameLookups> names_ = std::make_shared<NameLookups>(
      thread_.settings().context, thread_.settings().lookup, thread_.settings().privateNames);
};

}  // namespace stitchkit::testing
