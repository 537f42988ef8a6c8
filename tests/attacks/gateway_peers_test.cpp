// Clients that send too much, too slowly, too often, or leave: the gateway goes on, and stays as small as it was.
#include "tests/attacks/gateway_client.h"

#include <catch2/catch.hpp>

#include <algorithm>

namespace stitchkit::testing {
namespace {

constexpr long kGrowthKib = 8L * 1024;  // issue 4, figures
constexpr long kMebibyte = 1024L * 1024;
const std::string kEndless = std::to_string(200 * kMebibyte);

SidecarOptions startedBy(StartAs startAs) {
  SidecarOptions options;
  options.startAs = startAs;
  return options;
}

/// Answers `/` at once; `/mebibyte` with one; `/hang` never.
bool answerByPath(const UpstreamRequest& request, int connection) {
  if (request.target == "/hang") {
    waitForClose(connection);
    return false;
  }
  return sendAll(connection, response(request.target == "/mebibyte" ? std::string(kMebibyte, 'm') : "ok"));
}

/// A gateway that has been used, so that what follows is not the first time.
struct Attacked {
  explicit Attacked(StartAs startAs = startModes().front()) : sidecar(startedBy(startAs)), guest(sidecar, upstream) {
    REQUIRE(linesThatAre(guest.run("get", {"/", "50"}), "status=200") == 50);
    REQUIRE(guest.ask("/mebibyte") == "200");
  }

  /// So many requests have a place at the gateway, soon: what a guest has sent, the gateway may not have read yet.
  bool holds(int requests) {
    return eventually([&] { return sidecar.call("backend.stats").at("gateway").at("live") == requests; });
  }

  Upstream upstream{answerByPath};
  Sidecar sidecar;
  GatewayGuest guest;
};

TEST_CASE("a request line or a header without an end is refused, and takes no memory") {
  Attacked now(GENERATE(from_range(startModes())));
  const MemoryGrowth growth(now.sidecar);
  for (const char* mode : {"line", "header"}) {
    const std::string said = now.guest.run(mode, {kEndless});
    CAPTURE(mode, said);
    CHECK(linesThatAre(said, "whole=no") == 1);
    CHECK(linesThatAre(said, "status=431") == 1);
  }
  CHECK(now.guest.run("headers", {"10000"}) == "status=431\n");
  CHECK(now.guest.run("headers", {"50"}) == "status=200\n");  // control: so many are none too many
  CHECK(growth.kib() < kGrowthKib);
  CHECK(now.guest.ask() == "200");
}

TEST_CASE("sixteen clients that send their header a byte at a time keep nobody waiting, and have five seconds",
          "[waits]") {
  Attacked now(GENERATE(from_range(startModes())));
  const MemoryGrowth growth(now.sidecar);
  const std::string said = now.guest.run("dribble", {"16"});
  CAPTURE(said);
  CHECK(linesThatAre(said, "meanwhile=200") == 1);
  CHECK(linesThatAre(said, "ended=408") == 16);
  CHECK(growth.kib() < kGrowthKib);
}

TEST_CASE("sixteen bodies that never end take the places of their own session, for thirty seconds",
          "[deadline][bodies]") {
  Attacked now;
  GatewayGuest other(now.sidecar, now.upstream);
  const MemoryGrowth growth(now.sidecar);
  now.guest.spawn("slow-bodies", {"16"});
  std::string said = now.sidecar.outputBytes();
  REQUIRE(said == "sending=16\n");
  REQUIRE(now.holds(16));
  CHECK(now.guest.ask() == "503");
  CHECK(other.ask() == "200");
  while (said.find("afterwards") == std::string::npos) {
    const std::string piece = now.sidecar.outputBytes(Milliseconds(60000));
    CAPTURE(said);
    REQUIRE_FALSE(piece.empty());
    said += piece;
  }
  CAPTURE(said);
  CHECK(linesThatAre(said, "ended=408") == 16);
  CHECK(linesThatAre(said, "afterwards=200") == 1);
  CHECK(growth.kib() < kGrowthKib);
}

TEST_CASE("bodies over the limit are refused, declared or not, sixteen at once; bodies at the limit pass") {
  Attacked now(GENERATE(from_range(startModes())));
  const MemoryGrowth growth(now.sidecar);
  for (const char* form : {"declared", "chunked"}) {
    CAPTURE(form);
    for (const long bytes : {kMebibyte + 1, 64 * kMebibyte}) {
      const auto said = now.guest.run("bodies", {std::to_string(bytes), form, "16"});
      CAPTURE(bytes, said);
      CHECK(linesThatAre(said, "status=413") == 16);
    }
    CHECK(growth.kib() < kGrowthKib);
  }
  const std::size_t before = now.upstream.count();
  for (const char* form : {"declared", "chunked"}) {
    const auto said = now.guest.run("bodies", {std::to_string(kMebibyte), form, "16"});
    CAPTURE(form, said);
    CHECK(linesThatAre(said, "status=200") == 16);
  }
  CHECK(now.upstream.count() == before + 32);
  CHECK(growth.kib() < 4 * kGrowthKib);  // what is passed on is held for a moment, and not all at once
}

TEST_CASE("a hundred connections without a byte keep nobody waiting", "[waits]") {
  Attacked now;
  GatewayGuest other(now.sidecar, now.upstream);
  const auto idle = now.guest.spawn("idle", {"100"});
  REQUIRE(now.sidecar.outputBytes() == "open=100\n");
  CHECK(now.guest.ask() == "200");
  CHECK(other.ask() == "200");
  // They do not last either.
  CHECK(now.sidecar.outputBytes(Milliseconds(60000)) == "over=100\n");
}

TEST_CASE("clients that vanish free their places, whatever the upstream does", "[waits]") {
  Attacked now(GENERATE(from_range(startModes())));
  const ProcessCounters before = countersOf(now.sidecar.pid());
  for (const char* path : {"/hang", "/mebibyte"}) {
    CAPTURE(path);
    const std::size_t seen = now.upstream.count();
    const auto pending = now.guest.spawn("pending", {"16", path});
    REQUIRE(now.upstream.waitForCount(seen + 16));
    CHECK(now.guest.ask() == "503");  // so they did have them
    now.guest.kill(pending);
    CHECK(eventually([&] { return now.guest.ask() == "200"; }, Milliseconds(15000)));
  }
  // The gateway's part of the connections to the upstream ends as well: kept for a while at most, hanging never.
  // Launches that wait hold some as well, until nobody has asked for a command for a while.
  CHECK(
      eventually([&] { return countersOf(now.sidecar.pid()).descriptors <= before.descriptors; }, Milliseconds(60000)));
  CHECK(eventually([&] { return countersOf(now.sidecar.pid()).threads <= before.threads; }, Milliseconds(30000)));
}

TEST_CASE("clients that do not read their answers lose their places in time", "[deadline][answers]") {
  Attacked now;
  GatewayGuest other(now.sidecar, now.upstream);
  const std::size_t seen = now.upstream.count();
  const auto unread = now.guest.spawn("unread", {"16", "/mebibyte"});
  REQUIRE(now.upstream.waitForCount(seen + 16));
  CHECK(now.guest.ask() == "503");
  CHECK(other.ask() == "200");
  std::string said;
  for (std::string piece = "."; !piece.empty() && said.find("afterwards") == std::string::npos; said += piece) {
    piece = now.sidecar.outputBytes(Milliseconds(60000));
  }
  CHECK(said == "sent=16\nover=16\nafterwards=200\n");
}

TEST_CASE("a session that floods its gateway does not keep another from its own") {
  Attacked now;
  GatewayGuest other(now.sidecar, now.upstream);
  const auto flood = now.guest.spawn("flood", {"40"});
  for (int i = 0; i < 20; ++i) {
    const std::size_t seen = now.upstream.count();
    REQUIRE(now.upstream.waitForCount(seen + 100));  // the flood goes on
    REQUIRE(linesThatAre(other.run("get", {"/", "20"}), "status=200") == 20);
  }
  now.guest.kill(flood);
  CHECK(eventually([&] { return now.guest.ask() == "200"; }));
}

TEST_CASE("descriptors that a guest passes to the gateway do not stay there", "[waits]") {
  Attacked now(GENERATE(from_range(startModes())));
  // The upstream's connection that the warming up has left must have gone: it would hide one.
  long before = 0;
  REQUIRE(eventually([&] { return now.upstream.open() == 0; }, Milliseconds(20000)));
  before = countersOf(now.sidecar.pid()).descriptors;
  const auto passing = now.guest.spawn("descriptors", {"200"});
  std::string said;
  while (linesThatAre(said, "status=200") == 0) {
    const std::string piece = now.sidecar.outputBytes();
    REQUIRE_FALSE(piece.empty());
    said += piece;
  }
  CHECK(linesThatAre(said, "passed=ok") == 2);
  // The guest is there still: its process (some descriptors), its connection, that to the upstream.
  CHECK(countersOf(now.sidecar.pid()).descriptors < before + 30);
  now.guest.kill(passing);
  CHECK(eventually([&] { return countersOf(now.sidecar.pid()).descriptors <= before; }, Milliseconds(60000)));
}

TEST_CASE("after a kill with requests in flight nothing is left, and the next sidecar's gateway works") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  const Upstream upstream(answerByPath);
  SidecarOptions options = startedBy(startAs);
  options.state = std::make_shared<StateDirectory>(startAs);
  Json state;
  for (int i = 0; i < 3; ++i) {
    Sidecar sidecar(options);
    auto guest = state.is_null() ? std::make_unique<GatewayGuest>(sidecar, upstream)
                                 : std::make_unique<GatewayGuest>(sidecar, upstream, allowOnly(upstream), state);
    state = guest->session().state();
    CHECK(guest->ask() == "200");
    const std::size_t seen = upstream.count();
    guest->spawn("pending", {"10", "/hang"});
    REQUIRE(upstream.waitForCount(seen + 10));
    sidecar.kill(SIGKILL);
    REQUIRE(sidecar.waitForExit()->signal == SIGKILL);
    CHECK(onlyDescendants({}));
    CHECK(eventually([&] { return upstream.open() == 0; }));
  }
}

}  // namespace
}  // namespace stitchkit::testing
