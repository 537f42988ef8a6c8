// What all gateways share, the loop, the way to the host, descriptors: no guest uses it up.
#include "tests/attacks/gateway_client.h"

#include <sys/resource.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <thread>

namespace stitchkit::testing {
namespace {

// What may wait for a host that does not read (ARCHITECTURE.md, back-pressure), and room to breathe.
constexpr long kUnreadKib = 24L * 1024;
constexpr int kSessions = 20;

TEST_CASE("a host that does not read is no way to the sidecar's memory: errors of the gateway wait with their guests") {
  const Upstream upstream;
  Sidecar sidecar;
  GatewayGuest guest(sidecar, upstream);
  const auto flood = guest.spawn("forbidden", {"4"});
  REQUIRE(sidecar.notification("gateway.error").at("params").at("code") == "SANDBOX_NETWORK_DENIED");
  sidecar.pauseReading();
  const MemoryGrowth growth(sidecar);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(4);
  while (std::chrono::steady_clock::now() < until && growth.kib() < 4 * kUnreadKib) {
    std::this_thread::sleep_for(Milliseconds(20));  // between samples
  }
  CHECK(growth.kib() < kUnreadKib);
  sidecar.resumeReading();
  guest.kill(flood);
  CHECK(guest.ask() == "200");
}

TEST_CASE("a guest whose requests are refused as fast as it can send them does not take the loop from others") {
  const Upstream upstream;
  Sidecar sidecar;
  GatewayGuest guest(sidecar, upstream);
  Session other(sidecar);
  const auto flood = guest.spawn("forbidden", {"4"});
  sidecar.notification("gateway.error");
  const std::size_t before = sidecar.unclaimedNotifications();
  constexpr int kRuns = 20;
  for (int i = 0; i < kRuns; ++i) {
    REQUIRE(other.run({"/bin/true"}).exitCode == 0);
  }
  // What the host has to read between two answers of the other session's.
  CHECK((sidecar.unclaimedNotifications() - before) / kRuns < 200);
  guest.kill(flood);
}

/// The limit of open files that most systems give, in effect for what is started meanwhile.
class UsualFileLimit {
 public:
  UsualFileLimit() {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &former_) == 0);
    rlimit usual = former_;
    usual.rlim_cur = std::min<rlim_t>(1024, former_.rlim_max);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &usual) == 0);
  }
  ~UsualFileLimit() { ::setrlimit(RLIMIT_NOFILE, &former_); }
  UsualFileLimit(const UsualFileLimit&) = delete;
  UsualFileLimit& operator=(const UsualFileLimit&) = delete;

 private:
  rlimit former_{};
};

TEST_CASE("guests that hold all the connections that they can leave descriptors for other sessions") {
  const UsualFileLimit limit;
  const Upstream upstream;
  Sidecar sidecar;
  GatewayGuest other(sidecar, upstream);
  std::vector<std::unique_ptr<GatewayGuest>> guests;
  for (int i = 0; i < kSessions; ++i) {
    guests.push_back(std::make_unique<GatewayGuest>(sidecar, upstream));
  }
  std::vector<std::int64_t> requests;
  for (const auto& guest : guests) {
    Json params = guest->session().commandParams(guest->argv("idle", {"100"}));
    params["stream"] = true;
    requests.push_back(sidecar.request("session.spawn", params));
  }
  int attacking = 0;
  for (const auto id : requests) {
    attacking += sidecar.response(id).contains("result") && sidecar.outputBytes() == "open=100\n" ? 1 : 0;
  }
  CHECK(attacking == kSessions);
  CHECK(other.session().run({"/bin/echo", "hi"}).out == "hi\n");
  CHECK(other.ask() == "200");
}

}  // namespace
}  // namespace stitchkit::testing
