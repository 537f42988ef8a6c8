// What is counted and told of the host's requests, and what is not.
#include "rpc/request_log.h"

#include <boost/json/parse.hpp>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

#include "rpc/base/limits.h"
#include "rpc/peer.h"
#include "tests/rpc/caught_stderr.h"
#include "tests/rpc/queue_loop.h"

namespace stitchkit {
namespace {

using Json = nlohmann::json;
using testing::CaughtStderr;

RequestLabel label(const std::string& params) {
  return RequestLabel::of("session.run", boost::json::parse(params));
}

TEST_CASE("requests: what one is about is told by the names that the sidecar gives, and nothing else",
          "[request-log]") {
  CHECK(label(R"({"handle":"h12"})").member == "handle");
  CHECK(label(R"({"handle":"h12"})").name == "h12");
  CHECK(label(R"({"toolset":"t1","input":{"handle":"h2"}})").name == "t1");
  CHECK(label(R"({"process":"p3"})").member == "process");
  for (const char* other : {"{}", "[]", "null", "7", R"({"handle":7})", R"({"handle":"hunter2"})", R"({"handle":"h"})",
                            R"({"handle":"h1 h2"})", R"({"handle":"h123456789012345678901"})", R"({"path":"h1"})"}) {
    CAPTURE(other);
    CHECK(label(other).name.empty());
    CHECK(label(other).method == "session.run");
  }
}

TEST_CASE("requests: a refusal is a line with method, name and code", "[request-log]") {
  CaughtStderr caught(LogFormat::kJson);
  RequestLog log;
  log.failed(label(R"({"handle":"h1"})"),
             Error(ErrorKind::kBusy, "Too many commands are live").withReason("limit").withHint("s3cret"));
  const auto lines = caught.lines();
  REQUIRE(lines.size() == 1);
  Json line = Json::parse(lines[0]);
  CHECK(line.at("durationMs").is_number());
  line.erase("time");
  line.erase("durationMs");
  CHECK(line == Json{{"level", "info"},
                     {"event", "refusal"},
                     {"method", "session.run"},
                     {"handle", "h1"},
                     {"code", "SANDBOX_BUSY"},
                     {"reason", "limit"},
                     {"message", "Too many commands are live"}});
  CHECK(log.counts().ended == 1);
  CHECK(log.counts().errors.at("SANDBOX_BUSY") == 1);
}

TEST_CASE("requests: no line repeats what the host or a model sent", "[request-log]") {
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::kSpillReferenceUnknown); ++kind) {
    const auto errorKind = static_cast<ErrorKind>(kind);
    CAPTURE(kind);
    CaughtStderr caught;
    setLogLevel(LogLevel::kDebug);
    RequestLog log;
    const bool ours = errorKind == ErrorKind::kUnavailable || errorKind == ErrorKind::kBusy ||
                      errorKind == ErrorKind::kStopped || errorKind == ErrorKind::kNetworkDenied ||
                      errorKind == ErrorKind::kLimit || errorKind == ErrorKind::kInsufficient;
    log.failed(label(R"({"handle":"s3cret","x":"s3cret"})"), Error(errorKind, ours ? "ours" : "no s3cret")
                                                                 .withReason("s3cret of a host's code")
                                                                 .withHint("s3cret")
                                                                 .withDetail("stdout", std::string("s3cret"))
                                                                 .withPrivate("s3cret"));
    const std::string text = caught.text();
    CHECK(text.find("refusal method=session.run code=") != std::string::npos);
    CHECK(text.find("s3cret") == std::string::npos);
    CHECK((text.find("message=ours") != std::string::npos) == ours);
  }
}

TEST_CASE("requests: at the level that is the default, everyday failures are not told", "[request-log]") {
  CaughtStderr caught;
  RequestLog log;
  for (const ErrorKind kind : {ErrorKind::kPath, ErrorKind::kNotFound, ErrorKind::kBadRequest, ErrorKind::kConflict,
                               ErrorKind::kCancelled, ErrorKind::kSpillReferenceUnknown}) {
    log.failed({}, Error(kind, "no"));
  }
  // Their commands tell of these.
  log.failed({}, Error(ErrorKind::kLimit, "late").withReason("deadline"));
  log.failed({}, Error(ErrorKind::kLimit, "much").withReason("output-budget"));
  CHECK(caught.text().empty());
  CHECK(log.counts().ended == 8);
  log.failed({}, Error(ErrorKind::kForbidden, "no"));
  CHECK(caught.text().find("refusal code=FORBIDDEN") != std::string::npos);
}

TEST_CASE("requests: a flood of refusals is a number of lines", "[request-log]") {
  CaughtStderr caught;
  RequestLog log;
  for (int i = 0; i < 5000; ++i) {
    log.failed({}, Error(ErrorKind::kForbidden, "no"));
    if (i % 50 == 0) {
      caught.text();
    }
  }
  CHECK(log.counts().errors.at("FORBIDDEN") == 5000);
  CHECK(logCounts().suppressed > 0);
}

void sendAndAwait(Peer& peer, RecordingSink& sink, const char* text) {
  const std::size_t before = sink.sent.size();
  peer.onFrame({FrameEvent::Kind::kMessage, text});
  REQUIRE(sink.sent.size() == before + 1);
}

TEST_CASE("requests: a peer counts what it answers, and how many were in flight at most", "[request-log]") {
  CaughtStderr caught;
  QueueLoop loop;
  RecordingSink sink;
  const MethodTable none;
  const auto peer = std::make_shared<Peer>(loop, sink, none, PeerOptions{});
  sendAndAwait(*peer, sink, "not JSON");
  sendAndAwait(*peer, sink, R"({"jsonrpc":"2.0","id":1,"method":"s3cret"})");
  sendAndAwait(*peer, sink, R"([{"jsonrpc":"2.0","id":1,"method":"s3cret"},1])");
  CHECK(peer->log().counts().ended == 4);
  CHECK(peer->log().counts().errors ==
        std::map<std::string_view, std::uint64_t>{{"INVALID_REQUEST", 1}, {"METHOD_NOT_FOUND", 2}, {"PARSE_ERROR", 1}});
  CHECK(peer->requests().depth == 0);
  CHECK(peer->requests().limit == limits::kRequestsInFlight);
  CHECK(caught.text().find("s3cret") == std::string::npos);
}

}  // namespace
}  // namespace stitchkit
