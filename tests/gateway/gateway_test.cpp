// A handle's gateway as its owner sees it, on all of the gateway's threads.
#include "gateway/gateway.h"

#include <catch2/catch.hpp>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "rpc/base/limits.h"
#include "tests/gateway/peers.h"
#include "tests/gateway/policies.h"
#include "tests/support/scratch.h"

namespace stitchkit {
namespace {

using namespace testing;

/// The test's own thread is the loop, while it waits for something.
class TestLoop : public Loop {
 public:
  void post(std::function<void()> task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    posted_.notify_one();
  }
  [[nodiscard]] bool onLoop() const override { return true; }

  /// Runs tasks until it holds.
  bool runUntil(const std::function<bool()>& condition) {
    while (!condition()) {
      std::unique_lock lock(mutex_);
      if (!posted_.wait_for(lock, std::chrono::milliseconds(kPatienceMs), [this] { return !tasks_.empty(); })) {
        return false;
      }
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> tasks_;
};

class WholeGateway {
 public:
  WholeGateway()
      : gateway_(loop_, threads_, *listenInDirectory(folder_.path(), "gateway.sock"), allowing(doorway.origin()),
                 std::make_shared<GatewayWatch>("h1", "session"),
                 [this](const GatewayFailure& failure) { failures.push_back(failure); }) {}
  ~WholeGateway() { close(); }
  WholeGateway(const WholeGateway&) = delete;
  WholeGateway& operator=(const WholeGateway&) = delete;

  Wire connect() { return connectToUnix(folder_ / "gateway.sock"); }
  std::pair<Wire, Wire> busyGuest() {
    Wire guest = connect();
    guest.send(get());
    Wire upstream = doorway.accept();
    upstream.readMessage();
    return {std::move(guest), std::move(upstream)};
  }
  void setPolicy(const NetworkPolicy& policy) {
    bool done = false;
    gateway_.setPolicy(policy, [&] { done = true; });
    REQUIRE(loop_.runUntil([&] { return done; }));
  }
  void close() {
    bool done = false;
    gateway_.close([&] { done = true; });
    REQUIRE(loop_.runUntil([&] { return done; }));
  }
  Gateway& gateway() { return gateway_; }
  TestLoop& loop() { return loop_; }
  [[nodiscard]] std::string get() const { return "GET / HTTP/1.1\r\nHost: " + doorway.host() + "\r\n\r\n"; }

  Doorway doorway;
  std::vector<GatewayFailure> failures;

 private:
  ScratchFolder folder_;
  TestLoop loop_;
  GatewayThreads threads_{GatewayOptions{}};
  Gateway gateway_;
};

TEST_CASE("guests that connect are served, on whichever thread") {
  WholeGateway whole;
  std::vector<std::pair<Wire, Wire>> guests;
  for (int i = 0; i < 8; ++i) {
    guests.push_back(whole.busyGuest());
  }
  for (auto& [guest, upstream] : guests) {
    upstream.send(okResponse("hello"));
    CHECK(guest.readMessage().ends_with("\r\n\r\nhello"));
  }
  CHECK(whole.failures.empty());
}

TEST_CASE("the threads of a handle share its sixteen requests") {
  WholeGateway whole;
  std::vector<std::pair<Wire, Wire>> busy;
  for (std::size_t i = 0; i < limits::kGatewayRequests; ++i) {
    busy.push_back(whole.busyGuest());
  }
  for (int i = 0; i < 4; ++i) {
    Wire late = whole.connect();
    late.send(whole.get());
    CHECK(late.readMessage().starts_with("HTTP/1.1 503 "));
  }
  CHECK_FALSE(whole.doorway.knocked());
}

TEST_CASE("one handle's requests take nothing from another's") {
  WholeGateway one;
  WholeGateway other;
  std::vector<std::pair<Wire, Wire>> busy;
  for (std::size_t i = 0; i < limits::kGatewayRequests; ++i) {
    busy.push_back(one.busyGuest());
  }
  auto [guest, upstream] = other.busyGuest();
  upstream.send(okResponse("hello"));
  CHECK(guest.readMessage().ends_with("\r\n\r\nhello"));
}

TEST_CASE("failures come on the loop") {
  WholeGateway whole;
  auto [guest, upstream] = whole.busyGuest();
  upstream.close();
  CHECK(guest.readMessage().starts_with("HTTP/1.1 502 "));
  REQUIRE(whole.loop().runUntil([&] { return !whole.failures.empty(); }));
  CHECK(whole.failures[0].error.kind == ErrorKind::kInternal);
  CHECK(whole.failures[0].origin == whole.doorway.origin());
}

TEST_CASE("once a change of policy is told, nothing of the former one is under way") {
  WholeGateway whole;
  std::vector<std::pair<Wire, Wire>> busy;
  for (int i = 0; i < 8; ++i) {
    busy.push_back(whole.busyGuest());
  }
  Doorway other;
  whole.setPolicy(allowing(other.origin()));
  for (auto& [guest, upstream] : busy) {
    CHECK(guest.readable());
    CHECK(upstream.readable());
    guest.expectEnd();
    upstream.expectEnd();
  }
  REQUIRE(whole.loop().runUntil([&] { return whole.failures.size() == busy.size(); }));
  for (const GatewayFailure& failure : whole.failures) {
    CHECK(failure.error.kind == ErrorKind::kCancelled);
  }
  for (int i = 0; i < 4; ++i) {
    Wire guest = whole.connect();
    guest.send(whole.get());
    CHECK(guest.readMessage().starts_with("HTTP/1.1 403 "));
    guest.send("GET / HTTP/1.1\r\nHost: " + other.host() + "\r\nConnection: close\r\n\r\n");
    Wire upstream = other.accept();
    upstream.readMessage();
    upstream.send(okResponse("new", "Connection: close\r\n"));
    CHECK(guest.readMessage().ends_with("\r\n\r\nnew"));
    guest.expectEnd();
  }
  CHECK_FALSE(whole.doorway.knocked());
}

TEST_CASE("a closed gateway ends everything, and may be closed again") {
  WholeGateway whole;
  auto [guest, upstream] = whole.busyGuest();
  Wire idle = whole.connect();
  idle.send("GET / HTTP/1.1\r\nHost: other\r\n\r\n");
  CHECK(idle.readMessage().starts_with("HTTP/1.1 403 "));
  whole.close();
  guest.expectEnd();
  upstream.expectEnd();
  idle.expectEnd();
  CHECK_THROWS(whole.connect());
  whole.close();
}

TEST_CASE("a gateway that is paused holds requests on every thread until it goes on") {
  WholeGateway whole;
  whole.gateway().setPaused(true);
  whole.setPolicy(allowing(whole.doorway.origin()));  // comes after it on every thread
  std::vector<Wire> guests;
  for (int i = 0; i < 6; ++i) {
    guests.push_back(whole.connect());
    guests.back().send(whole.get());
  }
  CHECK_FALSE(whole.doorway.knocked(100));
  whole.gateway().setPaused(false);
  std::vector<Wire> upstreams;
  for (int i = 0; i < 6; ++i) {
    upstreams.push_back(whole.doorway.accept());
    upstreams.back().readMessage();
  }
  for (Wire& upstream : upstreams) {
    upstream.send(okResponse("x"));
  }
  for (Wire& guest : guests) {
    CHECK(guest.readMessage().starts_with("HTTP/1.1 200 "));
  }
}

}  // namespace
}  // namespace stitchkit
