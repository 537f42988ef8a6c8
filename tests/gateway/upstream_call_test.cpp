// One request to an upstream and its answer, with everything that an upstream may do in between.
#include "gateway/upstream_call.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/gateway/caller.h"
#include "tests/gateway/peers.h"
#include "tests/gateway/policies.h"

namespace stitchkit {
namespace {

using namespace testing;
using namespace std::chrono_literals;

const std::string kFailedResponse = "HTTP/1.1 502 Bad Gateway\r\n";

std::string bodyOf(const std::string& message) {
  return message.substr(message.find("\r\n\r\n") + 4);
}

/// 200 with this body, and nothing told.
void expectOk(StartedCall& call, const std::string& body) {
  const CallResult result = call.result();
  INFO(result.response);
  CHECK(result.response.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(bodyOf(result.response) == body);
  CHECK_FALSE(result.failure.has_value());
  CHECK(call.timesEnded() == 1);
}

/// 502, and why.
Error expectFailure(StartedCall& call, ErrorKind kind) {
  const CallResult result = call.result();
  CHECK(result.response.starts_with(kFailedResponse));
  CHECK(bodyOf(result.response) == "Sandbox upstream request failed");
  REQUIRE(result.failure.has_value());
  INFO(result.failure->error.message << " (" << result.failure->error.privateDetail << ")");
  CHECK(result.failure->error.kind == kind);
  CHECK(call.timesEnded() == 1);
  return result.failure->error;
}

TEST_CASE("a request goes out and its answer comes back") {
  Doorway doorway;
  Caller caller(allowing(doorway.origin(), [](RuleInput& rule) { rule.headers = {{"x-key", "S3CRET"}}; }));
  StartedCall call = caller.start("POST", "hello");
  Wire upstream = doorway.accept();
  const std::string request = upstream.readMessage();
  CHECK(request.starts_with("POST / HTTP/1.1\r\n"));
  CHECK(request.find("\r\nx-key: S3CRET\r\n") != std::string::npos);
  CHECK(request.find("\r\nhost: " + doorway.host() + "\r\n") != std::string::npos);
  CHECK(bodyOf(request) == "hello");
  upstream.send(okResponse("there"));
  expectOk(call, "there");
}

TEST_CASE("a connection serves one request after another") {
  Doorway doorway;
  Caller caller(allowing(doorway.origin()));
  StartedCall first = caller.start("GET");
  Wire upstream = doorway.accept();
  for (const char* method : {"POST", "HEAD", "GET", "PUT"}) {
    upstream.readMessage();
    upstream.send(okResponse(""));
    expectOk(first, "");
    first = caller.start(method);
  }
  CHECK(upstream.readMessage().starts_with("PUT "));
  upstream.send("HTTP/1.1 204 No Content\r\n\r\n");
  CHECK(first.result().response.starts_with("HTTP/1.1 204 "));
  CHECK_FALSE(doorway.knocked());
}

TEST_CASE("connections are not used again where that is not sure to be right") {
  for (const std::string& last : {okResponse("x", "Connection: close\r\n"), okResponse("x") + "surplus",
                                  std::string("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx")}) {
    Doorway doorway;
    Caller caller(allowing(doorway.origin()));
    StartedCall call = caller.start("GET");
    Wire upstream = doorway.accept();
    upstream.readMessage();
    upstream.send(last);
    expectOk(call, "x");
    upstream.expectEnd();
    StartedCall next = caller.start("GET");
    Wire fresh = doorway.accept();
    fresh.readMessage();
    fresh.send(okResponse("y"));
    expectOk(next, "y");
  }
}

TEST_CASE("a kept connection that the upstream has closed is not used") {
  Doorway doorway;
  Caller caller(allowing(doorway.origin()));
  StartedCall call = caller.start("GET");
  Wire upstream = doorway.accept();
  upstream.readMessage();
  upstream.send(okResponse("one"));
  expectOk(call, "one");
  upstream.close();
  StartedCall next = caller.start("POST", "not to be lost");
  Wire fresh = doorway.accept();
  CHECK(bodyOf(fresh.readMessage()) == "not to be lost");
  fresh.send(okResponse("two"));
  expectOk(next, "two");
}

/// A connection that has served once, and a request that is on its way over it.
struct SecondRequest {
  explicit SecondRequest(const std::string& method, const std::string& body = "") : caller(allowing(doorway.origin())) {
    StartedCall first = caller.start("GET");
    upstream.emplace(doorway.accept());
    upstream->readMessage();
    upstream->send(okResponse("one"));
    first.result();
    call = caller.start(method, body);
    upstream->readMessage();
  }

  Doorway doorway;
  Caller caller;
  std::optional<Wire> upstream;
  StartedCall call;
};

TEST_CASE("an idempotent request whose kept connection ends is sent once more, whole") {
  for (const bool abruptly : {false, true}) {
    for (const char* method : {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"}) {
      const std::string body = std::string(method) == "PUT" ? std::string(200000, 'x') : "";
      SecondRequest second(method, body);
      abruptly ? second.upstream->reset() : second.upstream->close();
      Wire fresh = second.doorway.accept();
      const std::string again = fresh.readMessage();
      CHECK(again.starts_with(std::string(method) + " / HTTP/1.1\r\n"));
      CHECK(bodyOf(again) == body);
      fresh.send(okResponse(std::string(method) == "HEAD" ? "" : "two"));
      expectOk(second.call, std::string(method) == "HEAD" ? "" : "two");
    }
  }
}

TEST_CASE("it is sent once more, and not twice") {
  SecondRequest second("GET");
  second.upstream->close();
  Wire fresh = second.doorway.accept();
  fresh.readMessage();
  fresh.close();
  expectFailure(second.call, ErrorKind::kInternal);
  CHECK_FALSE(second.doorway.knocked());
}

TEST_CASE("other requests are not sent again, nor any whose answer has begun") {
  for (const char* method : {"POST", "PATCH"}) {
    SecondRequest second(method, "once");
    second.upstream->close();
    expectFailure(second.call, ErrorKind::kInternal);
    CHECK_FALSE(second.doorway.knocked());
  }
  SecondRequest begun("GET");
  begun.upstream->send("H");
  begun.upstream->close();
  expectFailure(begun.call, ErrorKind::kInternal);
  CHECK_FALSE(begun.doorway.knocked());

  SecondRequest denied("GET");
  denied.upstream->send("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n");
  expectFailure(denied.call, ErrorKind::kNetworkDenied);
  CHECK_FALSE(denied.doorway.knocked());
}

TEST_CASE("a fresh connection that ends without an answer fails at once") {
  Doorway doorway;
  Caller caller(allowing(doorway.origin()));
  StartedCall call = caller.start("GET");
  Wire upstream = doorway.accept();
  upstream.readMessage();
  upstream.close();
  expectFailure(call, ErrorKind::kInternal);
  CHECK_FALSE(doorway.knocked());
}

/// An upstream that answers 413 as soon as it has seen the header of a large request.
struct HastyUpstream {
  HastyUpstream() {
    upstream.readUntil("\r\n\r\n");
    upstream.send("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
  }
  void expectPassedOn() {
    const CallResult result = call.result();
    CHECK(result.response.starts_with("HTTP/1.1 413 "));
    CHECK(bodyOf(result.response) == "big");
    CHECK_FALSE(result.failure.has_value());
  }

  Doorway doorway;
  Caller caller{allowing(doorway.origin())};
  StartedCall call = caller.start("POST", std::string(32U * 1024 * 1024, 'x'));
  Wire upstream = doorway.accept();
};

TEST_CASE("an answer to a request that is still being sent is passed on") {
  HastyUpstream hasty;
  hasty.upstream.close();  // unread bytes and all
  hasty.expectPassedOn();
}

TEST_CASE("an answer to a request that is still being sent is passed on though the upstream reads no more") {
  HastyUpstream hasty;
  if (!hasty.call.endsWithin(15s)) {
    hasty.caller.cancel(hasty.call, ErrorKind::kLimit);
  }
  hasty.expectPassedOn();
  hasty.upstream.readToEnd();
}

TEST_CASE("an upstream that speaks before it has read everything gets the rest all the same") {
  const std::string early = GENERATE("HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
                                     "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
  Doorway doorway;
  Caller caller(allowing(doorway.origin()));
  const std::string body(32U * 1024 * 1024, 'x');
  StartedCall call = caller.start("POST", body);
  Wire upstream = doorway.accept();
  upstream.readUntil("\r\n\r\n");
  upstream.send(early);
  REQUIRE(upstream.readWhile(body.size(), kPatienceMs).size() == body.size());
  upstream.send(early.find("200") == std::string::npos ? okResponse("end") : "end");
  expectOk(call, "end");
  // The connection is as good as any.
  StartedCall next = caller.start("GET");
  upstream.readMessage();
  upstream.send(okResponse("x"));
  expectOk(next, "x");
}

TEST_CASE("an answer that breaks a rule ends the connection at once") {
  const std::vector<std::pair<std::string, ErrorKind>> answers{
      {"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", ErrorKind::kNetworkDenied},
      {"HTTP/1.1 304 Not Modified\r\n\r\n", ErrorKind::kNetworkDenied},
      {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", ErrorKind::kNetworkDenied},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", ErrorKind::kLimit},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n", ErrorKind::kLimit},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", ErrorKind::kInternal},
      {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", ErrorKind::kInternal},
      {"garbage\r\n\r\n", ErrorKind::kInternal}};
  for (const auto& [answer, kind] : answers) {
    INFO(answer);
    Doorway doorway;
    Caller caller(allowing(doorway.origin(), [](RuleInput& rule) { rule.maxResponseBytes = 1000; }));
    StartedCall call = caller.start("GET");
    Wire upstream = doorway.accept();
    upstream.readMessage();
    upstream.send(answer);
    expectFailure(call, kind);
    upstream.expectEnd();
  }
}

TEST_CASE("an answer that ends too early is never taken for whole") {
  for (const char* answer : {"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"}) {
    for (const bool abruptly : {false, true}) {
      Doorway doorway;
      Caller caller(allowing(doorway.origin()));
      StartedCall call = caller.start("GET");
      Wire upstream = doorway.accept();
      upstream.readMessage();
      upstream.send(answer);
      abruptly ? upstream.reset() : upstream.close();
      expectFailure(call, ErrorKind::kInternal);
    }
  }
  Doorway doorway;
  Caller caller(allowing(doorway.origin()));
  StartedCall call = caller.start("GET");
  Wire upstream = doorway.accept();
  upstream.readMessage();
  upstream.send("HTTP/1.1 200 OK\r\n\r\nto the end");
  upstream.finishWriting();
  expectOk(call, "to the end");
}

TEST_CASE("an injected value that comes back is covered, refused or let through") {
  for (const auto& [word, expected] : std::vector<std::pair<Reflection, std::string>>{
           {Reflection::kRedact, "key ******"}, {Reflection::kAllow, "key S3CRET"}, {Reflection::kRefuse, ""}}) {
    Doorway doorway;
    Caller caller(allowing(doorway.origin(), [word = word](RuleInput& rule) {
      rule.headers = {{"x-key", "S3CRET"}};
      rule.responseHeaders = {"x-echo"};
      rule.reflection = word;
    }));
    StartedCall call = caller.start("GET");
    Wire upstream = doorway.accept();
    upstream.readMessage();
    upstream.send(okResponse("key S3CRET", "X-Echo: S3CRET\r\n"));
    if (word == Reflection::kRefuse) {
      const Error error = expectFailure(call, ErrorKind::kNetworkDenied);
      CHECK(error.message.find("S3CRET") == std::string::npos);
    } else {
      const CallResult result = call.result();
      CHECK(bodyOf(result.response) == expected);
      CHECK(result.response.find("\r\nx-echo: " + expected.substr(4) + "\r\n") != std::string::npos);
    }
  }
}

std::size_t openDescriptors() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

/// Cancels, and expects that it ends by that, once, whatever comes later.
void expectCancelled(Caller& caller, StartedCall& call, ErrorKind kind) {
  CHECK(call.timesEnded() == 0);
  caller.cancel(call, kind);
  CHECK(call.timesEnded() == 1);
  caller.cancel(call, ErrorKind::kInternal);
  expectFailure(call, kind);
}

TEST_CASE("a call that is cancelled ends at once, whatever it waits for") {
  const ErrorKind kind = GENERATE(ErrorKind::kLimit, ErrorKind::kCancelled);
  SECTION("the name") {
    std::promise<void> release;
    std::promise<void> asked;
    const auto finished = std::make_shared<std::promise<void>>();
    Doorway doorway;
    {
      Caller caller(allowing("http://a.example:" + std::to_string(doorway.port())),
                    [&, gate = release.get_future().share(), finished](const std::string&,
                                                                       std::uint16_t port) -> Result<Endpoints> {
                      asked.set_value();
                      gate.wait();
                      finished->set_value();
                      return Endpoints{{boost::asio::ip::make_address("127.0.0.1"), port}};
                    });
      StartedCall call = caller.start("GET");
      asked.get_future().get();
      expectCancelled(caller, call, kind);
      release.set_value();
      finished->get_future().get();
    }
    CHECK_FALSE(doorway.knocked());
  }
  SECTION("the connection") {
    BlackHole hole;
    Caller caller(allowing(hole.origin()));
    StartedCall first = caller.start("GET");  // opens what the loop itself needs
    expectCancelled(caller, first, kind);
    const std::size_t before = openDescriptors();
    StartedCall call = caller.start("GET");
    CHECK(openDescriptors() == before + 1);
    expectCancelled(caller, call, kind);
    CHECK(openDescriptors() == before);
  }
  SECTION("the handshake") {
    Doorway doorway;
    Caller caller(allowing("https://" + doorway.host()));
    StartedCall call = caller.start("GET");
    Wire upstream = doorway.accept();
    upstream.readExactly(1);
    expectCancelled(caller, call, kind);
    upstream.readToEnd();
  }
  SECTION("the upstream to read") {
    Doorway doorway;
    Caller caller(allowing(doorway.origin()));
    const std::string body(32U * 1024 * 1024, 'x');
    StartedCall call = caller.start("POST", body);
    Wire upstream = doorway.accept();
    upstream.readUntil("\r\n\r\n");
    expectCancelled(caller, call, kind);
    CHECK(upstream.readToEnd().size() < body.size());
  }
  SECTION("the answer") {
    Doorway doorway;
    Caller caller(allowing(doorway.origin()));
    StartedCall call = caller.start("GET");
    Wire upstream = doorway.accept();
    upstream.readMessage();
    expectCancelled(caller, call, kind);
    upstream.expectEnd();
  }
  SECTION("the answer, on a connection that has served") {
    SecondRequest second("GET");
    expectCancelled(second.caller, second.call, kind);
    second.upstream->expectEnd();
    CHECK_FALSE(second.doorway.knocked());
  }
  SECTION("the rest of the answer") {
    Doorway doorway;
    Caller caller(allowing(doorway.origin()));
    StartedCall call = caller.start("GET");
    Wire upstream = doorway.accept();
    upstream.readMessage();
    upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell");
    expectCancelled(caller, call, kind);
    upstream.expectEnd();
  }
}

TEST_CASE("a call that has ended cannot be cancelled") {
  Doorway doorway;
  Caller caller(allowing(doorway.origin()));
  StartedCall call = caller.start("GET");
  Wire upstream = doorway.accept();
  upstream.readMessage();
  upstream.send(okResponse("x"));
  expectOk(call, "x");
  caller.cancel(call, ErrorKind::kLimit);
  CHECK(call.timesEnded() == 1);
  StartedCall next = caller.start("GET");
  upstream.readMessage();  // the kept connection is still there
  upstream.send(okResponse("y"));
  expectOk(next, "y");
}

/// Finds these ports of this machine, in this order; counts how often it was asked.
struct Ports {
  std::vector<std::uint16_t> ports;
  std::shared_ptr<std::atomic<int>> asked = std::make_shared<std::atomic<int>>(0);

  Result<Endpoints> operator()(const std::string&, std::uint16_t) const {
    ++*asked;
    Endpoints found;
    for (const std::uint16_t port : ports) {
      found.push_back({boost::asio::ip::make_address("127.0.0.1"), port});
    }
    return found;
  }
};

TEST_CASE("of several addresses the first that answers is used") {
  Doorway doorway;
  std::optional<BlackHole> hole;
  std::vector<std::uint16_t> ports;
  std::chrono::milliseconds time = 30s;
  SECTION("after one that refuses") {
    ports = {closedPort()};
  }
  SECTION("after several that refuse") {
    ports = {closedPort(), closedPort(), closedPort()};
  }
  SECTION("after one that does not answer") {
    hole.emplace();
    ports = {hole->port()};
    time = 4s;
  }
  SECTION("after some that do not answer and some that refuse") {
    hole.emplace();
    ports = {closedPort(), hole->port(), closedPort(), hole->port()};
    time = 6s;
  }
  ports.push_back(doorway.port());
  const Ports lookup{ports};
  Caller caller(allowing("http://a.example:8080"), lookup);
  StartedCall call = caller.start("POST", "once", time);
  Wire upstream = doorway.accept();
  CHECK(upstream.readMessage().find("\r\nhost: a.example:8080\r\n") != std::string::npos);
  upstream.send(okResponse("x"));
  expectOk(call, "x");
  CHECK(*lookup.asked == 1);
  CHECK_FALSE(doorway.knocked());
}

TEST_CASE("addresses that all fail, or none, are an internal failure") {
  const Ports lookup{GENERATE(std::vector<std::uint16_t>{}, std::vector<std::uint16_t>{closedPort()},
                              std::vector<std::uint16_t>{closedPort(), closedPort()})};
  Caller caller(allowing("http://a.example"), lookup);
  StartedCall call = caller.start("GET");
  expectFailure(call, ErrorKind::kInternal);
  CHECK(*lookup.asked == 1);
}

// A name that leads elsewhere a moment later: what was looked up and judged is what is dialled.
TEST_CASE("a name is asked for once a connection") {
  Doorway good;
  Doorway other;
  const auto asked = std::make_shared<std::atomic<int>>(0);
  Caller caller(allowing("http://localhost:8080"), [&, asked](const std::string&, std::uint16_t) -> Result<Endpoints> {
    return Endpoints{{boost::asio::ip::make_address("127.0.0.1"), ++*asked == 1 ? good.port() : other.port()}};
  });
  StartedCall first = caller.start("GET");
  Wire upstream = good.accept();
  for (int i = 0; i < 3; ++i) {
    upstream.readMessage();
    upstream.send(okResponse("x"));
    expectOk(first, "x");
    first = caller.start("GET");
  }
  upstream.readMessage();
  CHECK(*asked == 1);
  CHECK_FALSE(other.knocked());
  // A fresh connection asks again, and goes where that says.
  upstream.close();
  Wire fresh = other.accept();
  fresh.readMessage();
  fresh.send(okResponse("y"));
  expectOk(first, "y");
  CHECK(*asked == 2);
}

TEST_CASE("a name that cannot be used is told with its cause") {
  const ErrorKind kind = GENERATE(ErrorKind::kInternal, ErrorKind::kNetworkDenied);
  Caller caller(allowing("http://a.example"),
                [kind](const std::string&, std::uint16_t) -> Result<Endpoints> { return Error(kind, "no"); });
  StartedCall call = caller.start("GET");
  expectFailure(call, kind);
}

TEST_CASE("a large answer in small pieces is whole") {
  Doorway doorway;
  Caller caller(allowing(doorway.origin()));
  StartedCall call = caller.start("GET");
  Wire upstream = doorway.accept();
  upstream.readMessage();
  std::string body(1000000, 'x');
  for (std::size_t i = 0; i < body.size(); ++i) {
    body[i] = static_cast<char>(i * 31);
  }
  upstream.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (std::size_t at = 0; at < body.size(); at += 5000) {
    upstream.send("1388;x=y\r\n" + body.substr(at, 5000) + "\r\n");
  }
  upstream.send("0\r\n\r\n");
  expectOk(call, body);
}

}  // namespace
}  // namespace stitchkit
