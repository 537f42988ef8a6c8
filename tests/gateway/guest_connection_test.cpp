// Guests and upstreams on both sides of a handle's gateway, one thread's part of it.
#include "gateway/guest_connection.h"

#include <catch2/catch.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "rpc/base/limits.h"
#include "tests/gateway/gateway_thread.h"
#include "tests/gateway/peers.h"
#include "tests/gateway/policies.h"

namespace stitchkit {
namespace {

using namespace testing;

/// A gateway's part that allows one upstream.
class GatewayScene {
 public:
  explicit GatewayScene(const std::function<void(RuleInput&)>& change = {}, std::size_t share = 1)
      : core_(std::make_shared<GatewayCore>(thread_.settings(), places_, slots_, watch_, share,
                                            allowing(doorway.origin(), change), [this](GatewayFailure failure) {
                                              const std::lock_guard lock(mutex_);
                                              failures_.push_back(std::move(failure));
                                            })) {}
  ~GatewayScene() {
    thread_.run([this] { core_->close(); });
    thread_.run([this] { core_.reset(); });
  }
  GatewayScene(const GatewayScene&) = delete;
  GatewayScene& operator=(const GatewayScene&) = delete;

  Wire guest() {
    auto [wire, end] = guestWire();
    auto given = std::make_shared<UniqueFd>(std::move(end));
    onCore([given](GatewayCore& core) { core.serve(std::move(*given)); });
    return std::move(wire);
  }
  void onCore(const std::function<void(GatewayCore&)>& action) {
    thread_.run([&] { action(*core_); });
  }
  /// A guest whose request has reached an upstream.
  std::pair<Wire, Wire> busyGuest() {
    Wire one = guest();
    one.send(get());
    Wire upstream = doorway.accept();
    upstream.readMessage();
    return {std::move(one), std::move(upstream)};
  }
  [[nodiscard]] std::string get(const std::string& target = "/", const std::string& lines = "") const {
    return "GET " + target + " HTTP/1.1\r\nHost: " + doorway.host() + "\r\n" + lines + "\r\n";
  }
  [[nodiscard]] std::string post(const std::string& lines, const std::string& body = "") const {
    return "POST / HTTP/1.1\r\nHost: " + doorway.host() + "\r\n" + lines + "\r\n" + body;
  }
  std::vector<GatewayFailure> failures() {
    const std::lock_guard lock(mutex_);
    return failures_;
  }
  /// How many more requests could begin now.
  std::size_t freeSlots() {
    std::size_t taken = 0;
    while (slots_->take()) {
      ++taken;
    }
    for (std::size_t i = 0; i < taken; ++i) {
      slots_->giveBack();
    }
    return taken;
  }
  [[nodiscard]] bool allSlotsFree() {
    return becomesTrue([this] { return freeSlots() == limits::kGatewayRequests; });
  }

  GatewayWatch& watch() { return *watch_; }

  Doorway doorway;

 private:
  GatewayThread thread_;
  ConnectionPlaces places_{1U << 16};
  std::shared_ptr<RequestSlots> slots_ = std::make_shared<RequestSlots>();
  std::shared_ptr<GatewayWatch> watch_ = std::make_shared<GatewayWatch>("h1", "session");
  std::mutex mutex_;
  std::vector<GatewayFailure> failures_;
  std::shared_ptr<GatewayCore> core_;
};

std::string statusOf(const std::string& message) {
  return message.substr(0, message.find(' ', 9));
}

/// The next message's status, such as `HTTP/1.1 200`.
std::string answerOf(Wire& guest) {
  return statusOf(guest.readMessage());
}

TEST_CASE("a guest's requests are answered one after another on one connection") {
  GatewayScene scene;
  Wire guest = scene.guest();
  std::optional<Wire> upstream;
  for (int i = 0; i < 3; ++i) {
    guest.send(scene.get("/" + std::to_string(i)));
    if (!upstream) {
      upstream.emplace(scene.doorway.accept());
    }
    CHECK(upstream->readMessage().starts_with("GET /" + std::to_string(i) + " HTTP/1.1\r\n"));
    upstream->send(okResponse("answer " + std::to_string(i)));
    CHECK(guest.readMessage() ==
          "HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 8\r\n\r\nanswer " + std::to_string(i));
  }
  CHECK(scene.allSlotsFree());
  CHECK(scene.failures().empty());
}

TEST_CASE("requests that come ahead of their turn wait for it") {
  GatewayScene scene;
  Wire guest = scene.guest();
  guest.send(scene.get("/one") + scene.post("Content-Length: 4\r\n", "body") + "\r\n" + scene.get("/three"));
  Wire upstream = scene.doorway.accept();
  CHECK(upstream.readMessage().starts_with("GET /one "));
  CHECK_FALSE(upstream.readable());
  upstream.send(okResponse("1"));
  CHECK(upstream.readMessage().ends_with("\r\n\r\nbody"));
  CHECK_FALSE(upstream.readable());
  upstream.send(okResponse("2"));
  CHECK(upstream.readMessage().starts_with("GET /three "));
  upstream.send(okResponse("3"));
  for (const char* body : {"1", "2", "3"}) {
    CHECK(guest.readMessage().ends_with(std::string("\r\n\r\n") + body));
  }
}

TEST_CASE("a request may come in any pieces") {
  GatewayScene scene;
  Wire guest = scene.guest();
  const std::string request = scene.post("Transfer-Encoding: chunked\r\n", "5;x=y\r\nhello\r\n0\r\nX-T: z\r\n\r\n");
  for (const char c : request) {
    guest.send({&c, 1});
  }
  Wire upstream = scene.doorway.accept();
  CHECK(upstream.readMessage().ends_with("\r\n\r\nhello"));
  upstream.send(okResponse(""));
  CHECK(answerOf(guest) == "HTTP/1.1 200");
}

TEST_CASE("a guest that has finished with sending still gets its answer") {
  GatewayScene scene;
  Wire guest = scene.guest();
  guest.send(scene.get());
  guest.finishWriting();
  Wire upstream = scene.doorway.accept();
  upstream.readMessage();
  // Longer than the gateway takes to begin watching its guest.
  CHECK_FALSE(guest.readable(200));
  upstream.send(okResponse("late"));
  CHECK(guest.readMessage().ends_with("\r\n\r\nlate"));
  guest.expectEnd();
}

TEST_CASE("a guest that has gone frees its slot, and its request ends") {
  GatewayScene scene;
  SECTION("at once") {
    auto [guest, upstream] = scene.busyGuest();
    CHECK(scene.freeSlots() == limits::kGatewayRequests - 1);
    guest.close();
    upstream.expectEnd();
    CHECK(scene.allSlotsFree());
    REQUIRE(becomesTrue([&] { return scene.failures().size() == 1; }));
    CHECK(scene.failures()[0].error.kind == ErrorKind::kCancelled);
    CHECK(scene.failures()[0].origin == scene.doorway.origin());
  }
  SECTION("after a while") {
    auto [guest, upstream] = scene.busyGuest();
    CHECK_FALSE(guest.readable(200));
    guest.close();
    upstream.expectEnd();
    CHECK(scene.allSlotsFree());
  }
  SECTION("with another request already sent") {
    auto [guest, upstream] = scene.busyGuest();
    guest.send(scene.get("/next"));
    guest.close();
    upstream.expectEnd();
    CHECK(scene.allSlotsFree());
  }
  SECTION("in the middle of its body") {
    Wire guest = scene.guest();
    guest.send(scene.post("Content-Length: 10\r\n", "abc"));
    CHECK(becomesTrue([&] { return scene.freeSlots() == limits::kGatewayRequests - 1; }));
    guest.close();
    CHECK(scene.allSlotsFree());
  }
  SECTION("in the middle of its answer") {
    auto [guest, upstream] = scene.busyGuest();
    upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel");
    guest.close();
    upstream.expectEnd();
    CHECK(scene.allSlotsFree());
  }
  SECTION("with an answer that it does not read") {
    auto [guest, upstream] = scene.busyGuest();
    upstream.send(okResponse(std::string(1000000, 'x')));
    CHECK(guest.readable(kPatienceMs));
    guest.close();
    CHECK(scene.allSlotsFree());
  }
}

TEST_CASE("sixteen requests at once, and no seventeenth") {
  GatewayScene scene;
  std::vector<std::pair<Wire, Wire>> busy;
  for (std::size_t i = 0; i < limits::kGatewayRequests; ++i) {
    busy.push_back(scene.busyGuest());
  }
  Wire late = scene.guest();
  late.send(scene.get());
  CHECK(late.readMessage().ends_with("\r\n\r\nSandbox broker busy"));
  late.send(scene.get());
  CHECK(answerOf(late) == "HTTP/1.1 503");
  CHECK_FALSE(scene.doorway.knocked());
  // With a body behind it the connection ends.
  Wire lateBody = scene.guest();
  lateBody.send(scene.post("Content-Length: 3\r\n", "abc"));
  CHECK(answerOf(lateBody) == "HTTP/1.1 503");
  lateBody.expectEnd();
  // What needs no upstream needs no slot.
  late.send("GET / HTTP/1.1\r\nHost: other.example\r\n\r\n");
  CHECK(answerOf(late) == "HTTP/1.1 403");

  busy[3].second.send(okResponse("x"));
  CHECK(answerOf(busy[3].first) == "HTTP/1.1 200");
  late.send(scene.get());
  busy[3].second.readMessage();  // the connection that is free again
  busy[3].second.send(okResponse("y"));
  CHECK(answerOf(late) == "HTTP/1.1 200");
  for (auto& [guest, upstream] : busy) {
    guest.close();
  }
  CHECK(scene.allSlotsFree());
}

TEST_CASE("what became of each request is counted, once") {
  GatewayScene scene([](RuleInput& rule) { rule.maxRequestBytes = 10; });
  const auto becomes = [&](GatewayOutcome outcome, std::uint64_t count) {
    return becomesTrue([&] { return scene.watch().count(outcome) == count; });
  };
  auto [guest, upstream] = scene.busyGuest();
  CHECK(scene.watch().requests.now() == 1);
  CHECK(scene.watch().total() == 0);
  upstream.send(okResponse("hello"));
  CHECK(answerOf(guest) == "HTTP/1.1 200");
  CHECK(becomes(GatewayOutcome::kAnswered, 1));
  guest.send("GET / HTTP/1.1\r\nHost: other.example\r\n\r\n");
  CHECK(answerOf(guest) == "HTTP/1.1 403");
  CHECK(becomes(GatewayOutcome::kDenied, 1));
  guest.send("TRACE / HTTP/1.1\r\nHost: " + scene.doorway.host() + "\r\n\r\n");
  CHECK(answerOf(guest) == "HTTP/1.1 502");
  CHECK(becomes(GatewayOutcome::kDenied, 2));
  guest.send(scene.post("Transfer-Encoding: chunked\r\n", "b\r\n01234567890\r\n0\r\n\r\n"));
  CHECK(answerOf(guest) == "HTTP/1.1 413");
  CHECK(becomes(GatewayOutcome::kMalformed, 1));
  Wire malformed = scene.guest();
  malformed.send("GET /\r\n\r\n");
  CHECK(answerOf(malformed) == "HTTP/1.1 400");
  CHECK(becomes(GatewayOutcome::kMalformed, 2));
  Wire failing = scene.guest();
  failing.send(scene.post("Content-Length: 1\r\n", "x"));
  upstream.readMessage();
  upstream.close();
  CHECK(answerOf(failing) == "HTTP/1.1 502");
  CHECK(becomes(GatewayOutcome::kUpstreamFailed, 1));
  auto [leaving, unanswered] = scene.busyGuest();
  leaving.close();
  CHECK(becomes(GatewayOutcome::kGuestGone, 1));
  auto [ended, also] = scene.busyGuest();
  scene.onCore([](GatewayCore& core) { core.setPolicy(NetworkPolicy()); });
  ended.expectEnd();
  CHECK(scene.watch().count(GatewayOutcome::kEnded) == 1);
  // Connections without a request are none.
  scene.guest().close();
  CHECK(becomesTrue([&] { return scene.watch().connections.now() == 0; }));
  CHECK(scene.watch().total() == 8);
  CHECK(scene.watch().requests.now() == 0);
  CHECK(scene.watch().requests.most() == 1);
  CHECK(scene.watch().connections.most() >= 2);
}

TEST_CASE("requests beyond the sixteen are counted as such") {
  GatewayScene scene;
  std::vector<std::pair<Wire, Wire>> busy;
  for (std::size_t i = 0; i < limits::kGatewayRequests; ++i) {
    busy.push_back(scene.busyGuest());
  }
  Wire late = scene.guest();
  late.send(scene.get());
  CHECK(answerOf(late) == "HTTP/1.1 503");
  CHECK(becomesTrue([&] { return scene.watch().count(GatewayOutcome::kBusy) == 1; }));
  CHECK(scene.watch().requests.now() == limits::kGatewayRequests);
  CHECK(scene.watch().requests.most() == limits::kGatewayRequests);
}

TEST_CASE("a large body that is held is counted until it is over") {
  GatewayScene scene;
  const std::string body(limits::kGatewaySmallBodyBytes * 2, 'x');
  Wire guest = scene.guest();
  guest.send(scene.post("Content-Length: " + std::to_string(body.size()) + "\r\n", body));
  Wire upstream = scene.doorway.accept();
  upstream.readMessage();
  CHECK(scene.watch().heldBodyBytes.now() == body.size());
  upstream.send(okResponse(""));
  CHECK(answerOf(guest) == "HTTP/1.1 200");
  CHECK(becomesTrue([&] { return scene.watch().heldBodyBytes.now() == 0; }));
  CHECK(scene.watch().heldBodyBytes.most() == body.size());
}

TEST_CASE("requests that fail give their slots back") {
  GatewayScene scene([](RuleInput& rule) { rule.maxRequestBytes = 10; });
  for (std::size_t i = 0; i < 2 * limits::kGatewayRequests; ++i) {
    Wire guest = scene.guest();
    guest.send(scene.post("Transfer-Encoding: chunked\r\n", "b\r\n01234567890\r\n0\r\n\r\n"));
    CHECK(answerOf(guest) == "HTTP/1.1 413");
    Wire malformed = scene.guest();
    malformed.send(scene.post("Transfer-Encoding: chunked\r\n", "x\r\n"));
    CHECK(answerOf(malformed) == "HTTP/1.1 400");
    Wire failing = scene.guest();
    failing.send(scene.get());
    scene.doorway.accept().close();
    CHECK(answerOf(failing) == "HTTP/1.1 502");
  }
  CHECK(scene.allSlotsFree());
}

TEST_CASE("a guest that dawdles holds up no other") {
  GatewayScene scene;
  Wire slowHeader = scene.guest();
  slowHeader.send("GET / HT");
  Wire slowBody = scene.guest();
  slowBody.send(scene.post("Content-Length: 10\r\n", "abc"));
  auto [unread, unreadUpstream] = scene.busyGuest();
  unreadUpstream.send(okResponse(std::string(1000000, 'x'), "Connection: close\r\n"));
  CHECK(unread.readable(kPatienceMs));
  auto [quick, upstream] = scene.busyGuest();
  upstream.send(okResponse("quick"));
  CHECK(answerOf(quick) == "HTTP/1.1 200");
  slowBody.send("0123456");
  upstream.readMessage();
  upstream.send(okResponse("slow"));
  CHECK(slowBody.readMessage().ends_with("\r\n\r\nslow"));
  CHECK(unread.readMessage().size() > 1000000);
}

TEST_CASE("a large answer reaches a guest whole, however slowly it reads") {
  GatewayScene scene;
  auto [guest, upstream] = scene.busyGuest();
  std::string body(1000000, 'x');
  for (std::size_t i = 0; i < body.size(); ++i) {
    body[i] = static_cast<char>(i * 131 >> 3);
  }
  upstream.send(okResponse(body));
  std::string got = guest.readUntil("\r\n\r\n");
  got.clear();
  while (got.size() < body.size()) {
    got += guest.readExactly(std::min<std::size_t>(50000, body.size() - got.size()));
  }
  CHECK(got == body);
  guest.send(scene.get());
  upstream.readMessage();
  upstream.send(okResponse("again"));
  CHECK(answerOf(guest) == "HTTP/1.1 200");
}

TEST_CASE("what is behind a refusal that ends the connection is never read as a request") {
  for (const char* start :
       {"POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n5;a=\"\n\"\r\nhello\r\n0\r\n\r\n",
        "GET / HTTP/1.1\nHost: HOST\n\n", "GET / HTTP/2.0\r\nHost: HOST\r\n\r\n",
        "CONNECT HOST HTTP/1.1\r\nHost: HOST\r\n\r\n", "GET / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\n\r\nhello",
        "POST / HTTP/1.1\r\nHost: other\r\nContent-Length: 5\r\n\r\nhello",
        "POST / HTTP/1.1\r\nHost: HOST\r\nExpect: x\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 99999999\r\n\r\n", "GET / HTTP/1.0\r\nHost: other\r\n\r\n",
        "GET /%zz HTTP/1.1\r\nHost: HOST\r\n\r\n"}) {
    GatewayScene scene;
    std::string bytes = start;
    for (std::size_t at; (at = bytes.find("HOST")) != std::string::npos;) {
      bytes.replace(at, 4, scene.doorway.host());
    }
    INFO(bytes);
    Wire guest = scene.guest();
    guest.send(bytes + scene.get("/hidden"));
    const std::string answer = guest.readMessage();
    CHECK(answer.find("\r\nconnection: close\r\n") != std::string::npos);
    guest.expectEnd();
    CHECK_FALSE(scene.doorway.knocked());
  }
}

TEST_CASE("refusals that leave no doubt keep the connection") {
  GatewayScene scene([](RuleInput& rule) { rule.pathPrefixes = {{"/v1"}}; });
  Wire guest = scene.guest();
  for (const std::string& request : {scene.get("/v2"), std::string("GET / HTTP/1.1\r\nHost: other\r\n\r\n"),
                                     std::string("GET / HTTP/1.1\r\n\r\n")}) {
    guest.send(request);
    CHECK(answerOf(guest) == "HTTP/1.1 403");
  }
  guest.send("HEAD /v2 HTTP/1.1\r\nHost: " + scene.doorway.host() + "\r\n\r\n");
  CHECK(guest.readUntil("\r\n\r\n").starts_with("HTTP/1.1 403 "));
  guest.send("TRACE /v1 HTTP/1.1\r\nHost: " + scene.doorway.host() + "\r\n\r\n");
  CHECK(answerOf(guest) == "HTTP/1.1 502");
  guest.send(scene.get("/v1"));
  Wire upstream = scene.doorway.accept();
  upstream.readMessage();
  upstream.send(okResponse("x"));
  CHECK(answerOf(guest) == "HTTP/1.1 200");
  const auto failures = scene.failures();
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].error.kind == ErrorKind::kNetworkDenied);
  CHECK(failures[0].origin == scene.doorway.origin());
}

TEST_CASE("a guest that goes on sending what was refused still sees the answer") {
  GatewayScene scene;
  Wire guest = scene.guest();
  guest.send(scene.post("Content-Length: 1048577\r\n"));
  guest.send(std::string(100000, 'x'));
  CHECK(answerOf(guest) == "HTTP/1.1 413");
  guest.sendSome(std::string(1000000, 'x'));  // more than is read on
  CHECK(becomesTrue([&] { return guest.sendSome("x") == 0; }));
}

TEST_CASE("a guest that asks first whether its body is welcome is told") {
  GatewayScene scene([](RuleInput& rule) { rule.maxRequestBytes = 5; });
  Wire guest = scene.guest();
  guest.send(scene.post("Expect: 100-continue\r\nContent-Length: 5\r\n"));
  CHECK(guest.readUntil("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  guest.send("hello");
  Wire upstream = scene.doorway.accept();
  CHECK(upstream.readMessage().ends_with("\r\n\r\nhello"));
  upstream.send(okResponse("x"));
  CHECK(answerOf(guest) == "HTTP/1.1 200");
  // Without waiting.
  guest.send(scene.post("Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"));
  CHECK(upstream.readMessage().ends_with("\r\n\r\nhello"));
  upstream.send(okResponse("x"));
  CHECK(guest.readUntil("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  CHECK(answerOf(guest) == "HTTP/1.1 200");
  guest.send(scene.post("Expect: 100-continue\r\nContent-Length: 6\r\n"));
  CHECK(answerOf(guest) == "HTTP/1.1 413");
  guest.expectEnd();
}

TEST_CASE("a body is let through up to its limit, and no further") {
  GatewayScene scene([](RuleInput& rule) { rule.maxRequestBytes = 200000; });
  const std::string body(200000, 'b');
  Wire guest = scene.guest();
  std::optional<Wire> upstream;
  for (const std::string& request :
       {scene.post("Content-Length: 200000\r\n", body),
        scene.post("Transfer-Encoding: chunked\r\n", "30d40\r\n" + body + "\r\n0\r\n\r\n")}) {
    guest.send(request);
    if (!upstream) {
      upstream.emplace(scene.doorway.accept());
    }
    CHECK(upstream->readMessage().ends_with("\r\n\r\n" + body));
    upstream->send(okResponse("x"));
    CHECK(answerOf(guest) == "HTTP/1.1 200");
  }
  guest.send(scene.post("Transfer-Encoding: chunked\r\n", "30d40\r\n" + body + "\r\n1\r\nb"));
  CHECK(answerOf(guest) == "HTTP/1.1 413");
  guest.expectEnd();
  Wire other = scene.guest();
  other.send(scene.post("Content-Length: 200001\r\n"));
  CHECK(answerOf(other) == "HTTP/1.1 413");
}

TEST_CASE("large bodies take turns, and small ones pass them") {
  GatewayScene scene([](RuleInput& rule) { rule.maxRequestBytes = limits::kGatewayBodyBytesMax; });
  const std::size_t size = limits::kGatewayHeldBodyBytes - 100000;
  const std::string length = "Content-Length: " + std::to_string(size) + "\r\n";
  const std::string body(size, 'b');
  Wire first = scene.guest();
  first.send(scene.post(length, body.substr(0, size - 1)));
  Wire second = scene.guest();
  second.send(scene.post(length));
  std::size_t sent = 0;
  // Nobody reads on, so that no more fits.
  while (second.writable(300)) {
    sent += second.sendSome(std::string_view(body).substr(sent));
  }
  CHECK(sent < size);
  auto [small, upstream] = scene.busyGuest();
  upstream.send(okResponse("small"));
  CHECK(answerOf(small) == "HTTP/1.1 200");

  SECTION("once the first has been sent") {
    first.send("b");
    CHECK(upstream.readMessage().ends_with("\r\n\r\n" + body));
    upstream.send(okResponse("first"));
    CHECK(first.readMessage().ends_with("\r\n\r\nfirst"));
  }
  SECTION("or has gone") {
    first.close();
  }
  second.send(std::string_view(body).substr(sent));
  CHECK(upstream.readMessage().ends_with("\r\n\r\n" + body));
  upstream.send(okResponse("second"));
  CHECK(second.readMessage().ends_with("\r\n\r\nsecond"));
}

TEST_CASE("a guest that leaves while its large body waits frees its slot") {
  GatewayScene scene;
  const std::string length = "Content-Length: 1000000\r\n";
  std::vector<Wire> holding;
  for (int i = 0; i < 3; ++i) {
    holding.push_back(scene.guest());
    holding.back().send(scene.post(length, std::string(100000, 'b')));
  }
  Wire waiting = scene.guest();
  waiting.send(scene.post(length, ""));
  CHECK(becomesTrue([&] { return scene.freeSlots() == limits::kGatewayRequests - 4; }));
  const std::string body(1000000, 'b');
  std::size_t sent = 0;
  while (waiting.writable(300)) {  // until it is not read any more
    sent += waiting.sendSome(std::string_view(body).substr(sent));
  }
  CHECK(sent < body.size());
  waiting.close();
  CHECK(becomesTrue([&] { return scene.freeSlots() == limits::kGatewayRequests - 3; }));
}

TEST_CASE("a change of policy ends what is under way, and holds at once") {
  GatewayScene scene;
  auto [idle, kept] = scene.busyGuest();
  kept.send(okResponse("x"));
  CHECK(answerOf(idle) == "HTTP/1.1 200");
  std::vector<std::pair<Wire, Wire>> busy;
  Wire reading = scene.guest();
  reading.send(scene.post("Content-Length: 10\r\n", "abc"));
  CHECK(becomesTrue([&] { return scene.freeSlots() == limits::kGatewayRequests - 1; }));
  Wire asking = scene.guest();
  asking.send(scene.get("/asking"));
  kept.readMessage();
  Doorway other;
  const NetworkPolicy next = allowing(other.origin());
  const bool closes = GENERATE(false, true);
  scene.onCore([&](GatewayCore& core) { closes ? core.close() : core.setPolicy(next); });
  kept.expectEnd();
  idle.expectEnd();
  reading.expectEnd();
  asking.expectEnd();
  CHECK(scene.freeSlots() == limits::kGatewayRequests);
  const auto failures = scene.failures();
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].error.kind == ErrorKind::kCancelled);

  Wire fresh = scene.guest();
  if (closes) {
    fresh.expectEnd();
    return;
  }
  fresh.send(scene.get());
  CHECK(answerOf(fresh) == "HTTP/1.1 403");
  fresh.send("GET / HTTP/1.1\r\nHost: " + other.host() + "\r\n\r\n");
  Wire upstream = other.accept();
  upstream.readMessage();
  upstream.send(okResponse("new"));
  CHECK(answerOf(fresh) == "HTTP/1.1 200");
  CHECK_FALSE(scene.doorway.knocked());
}

TEST_CASE("an idle connection to an upstream is closed by a change of policy") {
  GatewayScene scene;
  auto [guest, upstream] = scene.busyGuest();
  upstream.send(okResponse("x"));
  CHECK(answerOf(guest) == "HTTP/1.1 200");
  CHECK_FALSE(upstream.readable());
  scene.onCore([&](GatewayCore& core) { core.setPolicy(NetworkPolicy::denyAll()); });
  upstream.expectEnd();
}

TEST_CASE("an idle connection to an upstream is closed after a while") {
  GatewayScene scene;
  auto [guest, upstream] = scene.busyGuest();
  upstream.send(okResponse("x"));
  CHECK(answerOf(guest) == "HTTP/1.1 200");
  upstream.expectEnd();
}

TEST_CASE("while the host does not read no request goes out, and then all do") {
  GatewayScene scene;
  scene.onCore([](GatewayCore& core) { core.setPaused(true); });
  Wire held = scene.guest();
  held.send(scene.get("/held"));
  Wire denied = scene.guest();
  denied.send("GET / HTTP/1.1\r\nHost: other\r\n\r\n");
  CHECK(answerOf(denied) == "HTTP/1.1 403");
  Wire expecting = scene.guest();
  expecting.send(scene.post("Expect: 100-continue\r\nContent-Length: 5\r\n"));
  CHECK_FALSE(expecting.readable(100));
  CHECK_FALSE(scene.doorway.knocked());
  CHECK(scene.freeSlots() == limits::kGatewayRequests);
  scene.onCore([](GatewayCore& core) { core.setPaused(false); });

  Wire upstream = scene.doorway.accept();
  CHECK(upstream.readMessage().starts_with("GET /held "));
  upstream.send(okResponse("got"));
  CHECK(held.readMessage().ends_with("\r\n\r\ngot"));
  CHECK(expecting.readUntil("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  expecting.send("world");
  CHECK(upstream.readMessage().ends_with("\r\n\r\nworld"));
}

TEST_CASE("a guest that leaves while the host does not read is forgotten") {
  GatewayScene scene;
  scene.onCore([](GatewayCore& core) { core.setPaused(true); });
  Wire gone = scene.guest();
  gone.send(scene.post("Content-Length: 5\r\n", "hello"));
  CHECK_FALSE(gone.readable(100));
  gone.close();
  scene.onCore([](GatewayCore& core) { core.setPaused(false); });
  // Whether its request still goes out is a matter of luck; its slot is not.
  CHECK(becomesTrue([&] {
    if (scene.doorway.knocked()) {
      scene.doorway.accept().close();
    }
    return scene.freeSlots() == limits::kGatewayRequests;
  }));
  auto [guest, upstream] = scene.busyGuest();
  upstream.send(okResponse("x"));
  CHECK(answerOf(guest) == "HTTP/1.1 200");
}

TEST_CASE("a body that is held while the host does not read goes out whole") {
  GatewayScene scene;
  scene.onCore([](GatewayCore& core) { core.setPaused(true); });
  Wire guest = scene.guest();
  guest.send(scene.post("Content-Length: 5\r\n", "hello"));
  CHECK_FALSE(guest.readable(100));
  scene.onCore([](GatewayCore& core) { core.setPaused(false); });
  Wire upstream = scene.doorway.accept();
  CHECK(upstream.readMessage().ends_with("\r\n\r\nhello"));
  upstream.send(okResponse("got"));
  CHECK(guest.readMessage().ends_with("\r\n\r\ngot"));
}

TEST_CASE("with all places taken the connection that has idled longest makes room") {
  GatewayScene scene;
  auto [busy, upstream] = scene.busyGuest();
  std::vector<Wire> idle;
  for (std::size_t i = 1; i < limits::kGatewayConnections; ++i) {
    idle.push_back(scene.guest());
  }
  Wire late = scene.guest();
  late.send("GET / HTTP/1.1\r\nHost: other\r\n\r\n");
  CHECK(answerOf(late) == "HTTP/1.1 403");
  idle[0].expectEnd();
  CHECK_FALSE(idle[1].readable());
  CHECK_FALSE(busy.readable());
  upstream.send(okResponse("x"));
  CHECK(answerOf(busy) == "HTTP/1.1 200");
}

/// A scene in which requests that have begun hold all places, and as many connections wait for one.
struct CrowdedScene {
  CrowdedScene() {
    for (std::size_t i = 0; i < limits::kGatewayConnections; ++i) {
      begun.push_back(scene.guest());
      begun.back().send("GET / HT");
    }
    for (std::size_t i = 0; i < limits::kGatewayConnections; ++i) {
      waiting.push_back(scene.guest());
      waiting.back().send("GET / HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n");
    }
  }

  GatewayScene scene;
  std::vector<Wire> begun;
  std::vector<Wire> waiting;
};

TEST_CASE("with all places taken by requests further connections wait, and too many are told so") {
  CrowdedScene crowd;
  Wire late = crowd.scene.guest();
  const std::string answer = late.readMessage();
  CHECK(answer.starts_with("HTTP/1.1 503 "));
  CHECK(answer.ends_with("\r\n\r\nSandbox broker busy"));
  late.expectEnd();
  CHECK_FALSE(crowd.waiting[0].readable(50));
  for (std::size_t i = 0; i < 4; ++i) {
    crowd.begun[i].close();
  }
  // In the order in which they came.
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(answerOf(crowd.waiting[i]) == "HTTP/1.1 403");
  }
}

TEST_CASE("connections that wait for a place end with the gateway") {
  CrowdedScene crowd;
  crowd.scene.onCore([](GatewayCore& core) { core.close(); });
  for (Wire& guest : crowd.begun) {
    guest.expectEnd();
  }
  for (Wire& guest : crowd.waiting) {
    guest.expectEnd();
  }
}

TEST_CASE("a failed request leaves its guest's connection as it was") {
  GatewayScene scene;
  Wire guest = scene.guest();
  guest.send(scene.post("Content-Length: 5\r\n", "hello"));
  Wire upstream = scene.doorway.accept();
  upstream.readMessage();
  upstream.send("HTTP/1.1 302 Found\r\nLocation: http://evil/\r\nContent-Length: 0\r\n\r\n");
  const std::string answer = guest.readMessage();
  CHECK(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\nconnection: keep-alive\r\n"));
  CHECK(answer.find("evil") == std::string::npos);
  guest.send(scene.get());
  Wire fresh = scene.doorway.accept();
  fresh.readMessage();
  fresh.send(okResponse("x"));
  CHECK(answerOf(guest) == "HTTP/1.1 200");
  REQUIRE(scene.failures().size() == 1);
  CHECK(scene.failures()[0].error.kind == ErrorKind::kNetworkDenied);
}

// A guest that makes failures as fast as it can keeps the host from nothing else.
TEST_CASE("failures are told at a pace, and requests wait for it") {
  GatewayScene scene;
  Wire guest = scene.guest();
  const std::size_t over = limits::kGatewayFailuresPerSecond / 2;
  const auto before = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < limits::kGatewayFailureBurst + over; ++i) {
    guest.send("TRACE / HTTP/1.1\r\nHost: " + scene.doorway.host() + "\r\n\r\n");
    CHECK(answerOf(guest) == "HTTP/1.1 502");
  }
  // One step of the pace is a tenth of a second.
  CHECK(std::chrono::steady_clock::now() - before >= std::chrono::milliseconds(400));
  CHECK(scene.failures().size() == limits::kGatewayFailureBurst + over);
  // What does not concern the host never waits.
  for (std::size_t i = 0; i < 2 * limits::kGatewayFailureBurst; ++i) {
    guest.send("GET / HTTP/1.1\r\nHost: other\r\n\r\n");
    CHECK(answerOf(guest) == "HTTP/1.1 403");
  }
  guest.send(scene.get());
  Wire upstream = scene.doorway.accept();
  upstream.readMessage();
  upstream.send(okResponse("x"));
  CHECK(answerOf(guest) == "HTTP/1.1 200");
}

TEST_CASE("HTTP/1.0 is answered and closed") {
  for (const char* lines : {"", "Connection: keep-alive\r\n"}) {
    GatewayScene scene;
    Wire guest = scene.guest();
    guest.send("GET / HTTP/1.0\r\nHost: " + scene.doorway.host() + "\r\n" + lines + "\r\n");
    Wire upstream = scene.doorway.accept();
    upstream.readMessage();
    upstream.send(okResponse("old"));
    CHECK(guest.readMessage() == "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 3\r\n\r\nold");
    guest.expectEnd();
  }
}

TEST_CASE("answers to HEAD have no body, and the next request is read") {
  GatewayScene scene;
  Wire guest = scene.guest();
  guest.send("HEAD / HTTP/1.1\r\nHost: " + scene.doorway.host() + "\r\n\r\n" + scene.get("/next"));
  Wire upstream = scene.doorway.accept();
  upstream.readMessage();
  upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
  CHECK(guest.readUntil("\r\n\r\n") == "HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1000\r\n\r\n");
  CHECK(upstream.readMessage().starts_with("GET /next "));
  upstream.send(okResponse("next"));
  CHECK(guest.readMessage().ends_with("\r\n\r\nnext"));
}

}  // namespace
}  // namespace stitchkit
