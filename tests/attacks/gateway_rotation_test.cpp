// Policies that change while requests are under way: nothing of the old one is sent after the answer.
#include "tests/attacks/gateway_client.h"

#include <catch2/catch.hpp>

#include <algorithm>

namespace stitchkit::testing {
namespace {

constexpr int kRotations = 40;

std::string keyNumber(int number) {
  return "rotated-key-" + std::to_string(number) + "-value";
}

Json withKey(const Upstream& upstream, int number) {
  return allowOnly(upstream, {{"headers", {{"X-Key", keyNumber(number)}}}});
}

TEST_CASE("after setNetworkPolicy has answered the former credential is never sent again") {
  SidecarOptions options;
  options.startAs = GENERATE(from_range(startModes()));
  const Upstream upstream([](const UpstreamRequest& request, int connection) {
    if (request.target == "/hang") {
      waitForClose(connection);
      return false;
    }
    return sendAll(connection, response("ok"));
  });
  Sidecar sidecar(std::move(options));
  GatewayGuest guest(sidecar, upstream, withKey(upstream, 0));
  for (int i = 1; i <= kRotations; ++i) {
    const std::size_t start = upstream.count();
    const auto flood = guest.spawn("flood", {"8"});
    const auto pending = guest.spawn("pending", {"4", "/hang"});
    REQUIRE(upstream.waitForCount(start + 20));
    sidecar.request("process.stop", {{"process", pending}});
    guest.kill(flood);
    REQUIRE(eventually([&] {
      try {
        sidecar.call("session.setNetworkPolicy",
                     {{"handle", guest.session().handle()}, {"network", withKey(upstream, i)}});
        return true;
      } catch (const RpcError& error) {
        REQUIRE(error.code() == "SANDBOX_BUSY");  // the other one is not gone yet
        return false;
      }
    }));
    // Connections that held the old one do not live on, so what is read from now on comes from new ones.
    REQUIRE(upstream.allLeft());
    const std::size_t after = upstream.count();
    REQUIRE(guest.ask() == "200");
    const auto all = upstream.requests();
    REQUIRE(all.size() > after);
    REQUIRE(all[start].header("x-key") == keyNumber(i - 1));  // the control: it was in use before
    REQUIRE(std::all_of(all.begin() + static_cast<std::ptrdiff_t>(after), all.end(),
                        [&](const UpstreamRequest& one) { return one.header("x-key") == keyNumber(i); }));
  }
}

TEST_CASE("a policy that is taken away, and a stop, end requests in flight at once") {
  const Upstream upstream([](const UpstreamRequest& request, int connection) {
    if (request.target == "/hang") {
      waitForClose(connection);
      return false;
    }
    return sendAll(connection, response("ok"));
  });
  Sidecar sidecar;
  GatewayGuest guest(sidecar, upstream, withKey(upstream, 0));
  const auto hang = [&] {
    const std::size_t seen = upstream.count();
    const auto pending = guest.spawn("pending", {"16", "/hang"});
    REQUIRE(upstream.waitForCount(seen + 16));
    return pending;
  };
  guest.kill(hang());
  sidecar.call("session.setNetworkPolicy", {{"handle", guest.session().handle()}, {"network", "deny-all"}});
  CHECK(upstream.allLeft());
  CHECK(guest.ask() == "403");
  sidecar.call("session.setNetworkPolicy", {{"handle", guest.session().handle()}, {"network", withKey(upstream, 1)}});
  hang();
  guest.session().stop();  // kills it as well
  CHECK(upstream.allLeft());
}

}  // namespace
}  // namespace stitchkit::testing
