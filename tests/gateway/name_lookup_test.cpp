// Names that lead to private addresses, and lookups that take their time.
#include "gateway/name_lookup.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stitchkit {
namespace {

namespace ip = boost::asio::ip;

TEST_CASE("addresses that no public host has are private") {
  for (const char* text : {"0.0.0.0",
                           "0.1.2.3",
                           "10.0.0.0",
                           "10.255.255.255",
                           "100.64.0.0",
                           "100.127.255.255",
                           "127.0.0.1",
                           "127.255.255.255",
                           "169.254.0.1",
                           "169.254.169.254",
                           "172.16.0.0",
                           "172.31.255.255",
                           "192.0.0.1",
                           "192.0.2.1",
                           "192.88.99.1",
                           "192.168.0.1",
                           "192.168.255.255",
                           "198.18.0.0",
                           "198.19.255.255",
                           "198.51.100.7",
                           "203.0.113.7",
                           "224.0.0.1",
                           "239.255.255.255",
                           "240.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "::2",
                           "::127.0.0.1",
                           "::8.8.8.8",
                           "::ffff:127.0.0.1",
                           "::ffff:10.0.0.1",
                           "::ffff:8.8.8.8",
                           "::ffff:0:127.0.0.1",
                           "64:ff9b::127.0.0.1",
                           "64:ff9b::10.1.2.3",
                           "64:ff9b::169.254.169.254",
                           "64:ff9b:1::8.8.8.8",
                           "100::1",
                           "2001::1",
                           "2001:2::1",
                           "2001:10::1",
                           "2001:20::1",
                           "2001:1ff:ffff::1",
                           "2001:db8::1",
                           "2001:db8:ffff::1",
                           "2002:7f00:1::1",
                           "2002:a00:1::1",
                           "2002:c0a8:101::1",
                           "3fff::1",
                           "3fff:fff::1",
                           "fc00::1",
                           "fd12:3456::1",
                           "fdff::1",
                           "fe80::1",
                           "febf::1",
                           "fec0::1",
                           "ff02::1",
                           "4000::1",
                           "1fff::1",
                           "5f00::1"}) {
    INFO(text);
    CHECK(isPrivateAddress(ip::make_address(text)));
  }
  CHECK(isPrivateAddress(ip::make_address("fe80::1%1")));
}

TEST_CASE("their neighbours are public") {
  for (const char* text : {"1.0.0.0",          "8.8.8.8",
                           "9.255.255.255",    "11.0.0.0",
                           "100.63.255.255",   "100.128.0.0",
                           "126.255.255.255",  "128.0.0.0",
                           "169.253.255.255",  "169.255.0.0",
                           "172.15.255.255",   "172.32.0.0",
                           "192.0.1.0",        "192.0.3.0",
                           "192.167.255.255",  "192.169.0.0",
                           "198.17.255.255",   "198.20.0.0",
                           "198.51.99.255",    "198.51.101.0",
                           "203.0.112.255",    "203.0.114.0",
                           "223.255.255.255",  "2000::1",
                           "2001:200::1",      "2001:4860:4860::8888",
                           "2001:db7:ffff::1", "2001:db9::1",
                           "2002:808:808::1",  "2606:4700::1111",
                           "3ffe::1",          "3fff:1000::1",
                           "64:ff9b::8.8.8.8"}) {
    INFO(text);
    CHECK_FALSE(isPrivateAddress(ip::make_address(text)));
  }
}

Origin originOf(const std::string& text) {
  return *parseOrigin(text);
}

ip::tcp::endpoint endpointOf(const char* address, std::uint16_t port = 80) {
  return {ip::make_address(address), port};
}

LookupFunction alwaysFinding(Endpoints endpoints) {
  return
      [endpoints = std::move(endpoints)](const std::string&, std::uint16_t) -> Result<Endpoints> { return endpoints; };
}

/// Runs the context until the answer is there.
Result<Endpoints> looked(const std::string& origin, const LookupFunction& lookup, bool privateNames = false) {
  boost::asio::io_context context;
  const auto work = boost::asio::make_work_guard(context);
  std::optional<Result<Endpoints>> answer;
  addressesOf(originOf(origin), lookup, privateNames, context,
              [&](Result<Endpoints> found) { answer = std::move(found); });
  while (!answer) {
    context.run_one();
  }
  return std::move(*answer);
}

TEST_CASE("a name's public addresses are found in their order") {
  const Endpoints both{endpointOf("8.8.4.4"), endpointOf("2001:4860:4860::8888"), endpointOf("8.8.8.8")};
  CHECK(looked("http://a.example", alwaysFinding(both)).value() == both);
  std::string asked;
  looked("https://a.example:8443", [&](const std::string& host, std::uint16_t port) -> Result<Endpoints> {
    asked = host + " " + std::to_string(port);
    return Endpoints{endpointOf("8.8.8.8")};
  });
  CHECK(asked == "a.example 8443");
}

TEST_CASE("a name must not lead to a private address") {
  const Endpoints own{endpointOf("127.0.0.1"), endpointOf("10.0.0.1"), endpointOf("::1")};
  const Result<Endpoints> refused = looked("http://a.example", alwaysFinding(own));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::kNetworkDenied);
  CHECK(refused.error().message.find("127") == std::string::npos);
  CHECK(looked("http://a.example", alwaysFinding(own), true).value() == own);
  // The public ones of several are left.
  CHECK(
      looked("http://a.example", alwaysFinding({endpointOf("127.0.0.1"), endpointOf("8.8.8.8"), endpointOf("fe80::1")}))
          .value() == Endpoints{endpointOf("8.8.8.8")});
  for (const char* name : {"http://localhost.example", "http://xlocalhost", "http://localhost.localhost.example",
                           "http://metadata.internal"}) {
    CHECK(looked(name, alwaysFinding(own)).error().kind == ErrorKind::kNetworkDenied);
  }
}

TEST_CASE("localhost means this machine") {
  const Endpoints own{endpointOf("127.0.0.1")};
  for (const char* name :
       {"http://localhost", "http://LocalHost:8080", "http://app.localhost", "http://a.b.localhost"}) {
    CHECK(looked(name, alwaysFinding(own)).value() == own);
  }
}

TEST_CASE("a literal address is itself, private or not, and nothing is looked up") {
  bool lookedUp = false;
  const LookupFunction never = [&](const std::string&, std::uint16_t) -> Result<Endpoints> {
    lookedUp = true;
    return Endpoints{};
  };
  boost::asio::io_context context;
  std::vector<Endpoints> answers;
  for (const char* origin : {"http://127.0.0.1:8080", "https://[::1]", "http://10.0.0.1"}) {
    addressesOf(originOf(origin), never, false, context,
                [&](Result<Endpoints> found) { answers.push_back(found.value()); });
  }
  CHECK(answers == std::vector<Endpoints>{
                       {endpointOf("127.0.0.1", 8080)}, {endpointOf("::1", 443)}, {endpointOf("10.0.0.1", 80)}});
  CHECK_FALSE(lookedUp);
}

TEST_CASE("a name that is not found is an internal failure") {
  const auto failing = [](const std::string&, std::uint16_t) -> Result<Endpoints> {
    return Error(ErrorKind::kInternal, "The upstream's name could not be resolved");
  };
  CHECK(looked("http://a.example", failing).error().kind == ErrorKind::kInternal);
  CHECK(looked("http://a.invalid", systemLookup).error().kind == ErrorKind::kInternal);
}

TEST_CASE("the system's lookup finds this machine") {
  const Endpoints found = looked("http://localhost:8080", systemLookup).value();
  REQUIRE_FALSE(found.empty());
  for (const ip::tcp::endpoint& endpoint : found) {
    CHECK(endpoint.address().is_loopback());
    CHECK(endpoint.port() == 8080);
  }
}

// A name that answers differently each time: each answer is judged, and only a judged one comes back.
TEST_CASE("an answer that changes is judged anew") {
  int times = 0;
  const LookupFunction moving = [&](const std::string&, std::uint16_t) -> Result<Endpoints> {
    return Endpoints{endpointOf(++times % 2 == 1 ? "8.8.8.8" : "127.0.0.1")};
  };
  CHECK(looked("http://a.example", moving).value() == Endpoints{endpointOf("8.8.8.8")});
  CHECK(times == 1);
  CHECK(looked("http://a.example", moving).error().kind == ErrorKind::kNetworkDenied);
  CHECK(times == 2);
}

TEST_CASE("a slow lookup holds nobody up") {
  boost::asio::io_context context;
  const auto work = boost::asio::make_work_guard(context);
  std::promise<void> release;
  const LookupFunction slow = [gate = release.get_future().share()](const std::string&,
                                                                    std::uint16_t) -> Result<Endpoints> {
    gate.wait();
    return Endpoints{endpointOf("8.8.8.8")};
  };
  std::vector<std::string> answers;
  addressesOf(originOf("http://slow.example"), slow, false, context,
              [&](Result<Endpoints>) { answers.emplace_back("slow"); });
  addressesOf(originOf("http://fast.example"), alwaysFinding({endpointOf("8.8.4.4")}), false, context,
              [&](Result<Endpoints>) { answers.emplace_back("fast"); });
  context.run_one();
  CHECK(answers == std::vector<std::string>{"fast"});
  release.set_value();
  context.run_one();
  CHECK(answers == std::vector<std::string>{"fast", "slow"});
}

// Where nobody waits for it any more, not even the loop.
TEST_CASE("a lookup may end after the loop that asked for it") {
  std::promise<void> release;
  const auto finished = std::make_shared<std::promise<void>>();
  auto gone = finished->get_future();
  {
    boost::asio::io_context context;
    const LookupFunction slow = [gate = release.get_future().share(), finished](const std::string&,
                                                                                std::uint16_t) -> Result<Endpoints> {
      gate.wait();
      return Endpoints{endpointOf("8.8.8.8")};
    };
    // Destroyed with the lookup's answer: then its thread is about to end.
    const auto token = std::shared_ptr<void>(nullptr, [finished](void*) { finished->set_value(); });
    addressesOf(originOf("http://slow.example"), slow, false, context,
                [token](Result<Endpoints>) { FAIL_CHECK("nobody waits"); });
  }
  release.set_value();
  CHECK(gone.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
}

TEST_CASE("lookups at once have a ceiling, and lookups that end make room") {
  boost::asio::io_context context;
  const auto work = boost::asio::make_work_guard(context);
  std::promise<void> release;
  const LookupFunction slow = [gate = release.get_future().share()](const std::string&,
                                                                    std::uint16_t) -> Result<Endpoints> {
    gate.wait();
    return Endpoints{endpointOf("8.8.8.8")};
  };
  constexpr int kTried = 1100;
  int found = 0;
  int refused = 0;
  for (int i = 0; i < kTried; ++i) {
    addressesOf(originOf("http://slow.example"), slow, false, context,
                [&](const Result<Endpoints>& answer) { answer ? ++found : ++refused; });
  }
  CHECK(refused >= kTried - 1024);
  CHECK(refused < kTried);
  release.set_value();
  while (found + refused < kTried) {
    context.run_one();
  }
  CHECK(looked("http://a.example", alwaysFinding({endpointOf("8.8.8.8")})).has_value());
}

}  // namespace
}  // namespace stitchkit
