#include "rpc/host_requests.h"

#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>

#include <chrono>
#include <future>
#include <string>

#include "tests/rpc/queue_loop.h"

namespace stitchkit {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

/// A host whose answers the test gives.
struct AnsweringHost {
  QueueLoop loop;
  HostRequests::Answer answer;
  std::string asked;
  int forgotten = 0;

  HostRequests requests(std::chrono::milliseconds timeout) {
    return {loop,
            [this](std::string_view method, const json::object& params, HostRequests::Answer given) {
              asked = std::string(method) + " " + json::serialize(params);
              answer = std::move(given);
              return [this] { ++forgotten; };
            },
            timeout};
  }
};

auto askOnAThread(const HostRequests& requests, const std::stop_token& stop = {}) {
  return std::async(std::launch::async, [&requests, stop] { return requests.ask("host.ask", {{"n", 1}}, stop); });
}

}  // namespace

TEST_CASE("host requests: a thread gets the host's answer", "[host]") {
  AnsweringHost host;
  const HostRequests requests = host.requests(1h);
  auto answer = askOnAThread(requests);
  host.loop.runUntil([&] { return host.answer != nullptr; });
  CHECK(host.asked == R"(host.ask {"n":1})");
  host.answer(json::value("yes"));
  CHECK(answer.get().value() == "yes");
  CHECK(host.forgotten == 0);
}

TEST_CASE("host requests: an error is passed on", "[host]") {
  AnsweringHost host;
  const HostRequests requests = host.requests(1h);
  auto answer = askOnAThread(requests);
  host.loop.runUntil([&] { return host.answer != nullptr; });
  host.answer(Error(ErrorKind::kInternal, "no"));
  CHECK(answer.get().error().message == "no");
}

TEST_CASE("host requests: a late answer and one that nobody waits for are ignored", "[host]") {
  for (const bool cancelled : {false, true}) {
    AnsweringHost host;
    const HostRequests requests = host.requests(cancelled ? std::chrono::milliseconds(1h) : 10ms);
    std::stop_source source;
    auto answer = askOnAThread(requests, source.get_token());
    host.loop.runUntil([&] { return host.answer != nullptr; });
    if (cancelled) {
      source.request_stop();
    }
    CHECK(answer.get().error().kind == (cancelled ? ErrorKind::kCancelled : ErrorKind::kUnavailable));
    host.loop.runUntil([&] { return host.forgotten == 1; });
    host.answer(json::value("late"));
  }
}

}  // namespace stitchkit
