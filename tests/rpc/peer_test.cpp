#include "rpc/peer.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rpc/base/limits.h"
#include "tests/rpc/queue_loop.h"

namespace stitchkit {
namespace {

using Json = nlohmann::json;

// The peer knows no method; these are served by the test, under names for which there is a schema.
constexpr const char* kEcho = "session.resolvePath";  // answers at once with what it was given
constexpr const char* kHold = "process.result";       // waits for the test to answer
constexpr const char* kDrop = "process.stop";         // lets go of its reply
constexpr const char* kTell = "handle.probe";         // says whether it was cancelled

struct EchoParams {
  std::string handle;
  std::string path;
};
struct HoldParams {
  std::string process;
};
struct TellParams {};
struct Answer {
  std::string text;
};

std::string member(const boost::json::object& params, const char* name) {
  const auto& text = params.at(name).as_string();
  return {text.data(), text.size()};
}
Result<void> decode(boost::json::object& params, EchoParams& out) {
  out = {member(params, "handle"), member(params, "path")};
  if (out.path == "..") {
    return Error(ErrorKind::kPath, "Not a workspace path");  // what no schema says
  }
  return {};
}
Result<void> decode(boost::json::object& params, HoldParams& out) {
  out = {member(params, "process")};
  return {};
}
Result<void> decode(boost::json::object&, TellParams&) {
  return {};
}
boost::json::value encode(Answer answer) {
  return {{"text", answer.text}};
}

struct Held {
  CallContext call;
  Reply<Answer> reply;
};

Json call(Json id, const char* method, Json params) {
  return {{"jsonrpc", "2.0"}, {"id", std::move(id)}, {"method", method}, {"params", std::move(params)}};
}
Json note(const char* method, Json params) {
  return {{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}};
}
Json echo(Json id, const std::string& text = "x") {
  return call(std::move(id), kEcho, {{"handle", "h1"}, {"path", text}});
}
Json hold(Json id, const std::string& name) {
  return call(std::move(id), kHold, {{"process", name}});
}
Json cancel(Json id) {
  return note("$/cancelRequest", {{"id", std::move(id)}});
}
Json result(Json id, const std::string& text) {
  return {{"jsonrpc", "2.0"}, {"id", std::move(id)}, {"result", {{"text", text}}}};
}

/// A host, as the peer sees it.
class Host {
 public:
  explicit Host(PeerOptions options = {}) {
    methods_.add<EchoParams, Answer>(kEcho, [this](const CallContext&, const EchoParams& params, Reply<Answer> reply) {
      started.push_back(params.path);
      reply(Answer{params.path});
    });
    methods_.add<HoldParams, Answer>(kHold, [this](CallContext call, const HoldParams& params, Reply<Answer> reply) {
      started.push_back(params.process);
      held.emplace(params.process, Held{std::move(call), std::move(reply)});
    });
    methods_.add<HoldParams, Answer>(kDrop, [](const CallContext&, const HoldParams&, const Reply<Answer>&) {});
    methods_.add<TellParams, Answer>(
        kTell,
        [](const CallContext& call, const TellParams&, const Reply<Answer>& reply) {
          reply(Answer{call.cancellation->cancelled() ? "cancelled" : "not"});
        },
        MethodTable::OnCancel::kAnswers);
    peer = std::make_shared<Peer>(loop, sink, methods_, options);
  }

  void says(const Json& message) { saysText(message.dump()); }
  void saysText(std::string text) {
    peer->onFrame({FrameEvent::Kind::kMessage, std::move(text)});
    loop.drain();
  }
  /// Lets a held request be answered.
  void answer(const std::string& name, const std::string& text = "done") {
    const Held one = take(name);
    one.reply(Answer{text});
    loop.drain();
  }
  Held take(const std::string& name) {
    const auto found = held.find(name);
    if (found == held.end()) {
      throw std::runtime_error("not started: " + name);
    }
    Held one = std::move(found->second);
    held.erase(found);
    return one;
  }
  /// What was sent since the last call, each message read with the other parser.
  std::vector<Json> hears() {
    std::vector<Json> messages;
    for (const std::string& text : std::exchange(sink.sent, {})) {
      messages.push_back(Json::parse(text));
    }
    return messages;
  }
  /// The one message that was sent since the last call.
  Json hearsOne() {
    std::vector<Json> messages = hears();
    REQUIRE(messages.size() == 1);
    return messages.front();
  }

  QueueLoop loop;
  RecordingSink sink;
  std::shared_ptr<Peer> peer;
  std::vector<std::string> started;  // in order
  std::multimap<std::string, Held> held;
  void setGate(MethodTable::Gate gate) { methods_.setGate(std::move(gate)); }

 private:
  MethodTable methods_;
};

void checkError(const Json& message, const Json& id, int number, const std::string& name) {
  INFO(message.dump());
  CHECK(message["jsonrpc"] == "2.0");
  CHECK(message["id"] == id);
  REQUIRE(message.contains("error"));
  CHECK_FALSE(message.contains("result"));
  CHECK(message["error"]["code"] == number);
  CHECK(message["error"]["data"]["code"] == name);
  CHECK_FALSE(message["error"]["message"].get<std::string>().empty());
}

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("peer: a request is answered once, under its id", "[peer]") {
  Host host;
  for (const Json& id :
       {Json(1), Json("1"), Json(""), Json(-1), Json(9007199254740993), Json(18446744073709551615U), Json(nullptr)}) {
    host.says(echo(id, "hello"));
    CHECK(host.hearsOne() == result(id, "hello"));
  }
  CHECK(host.peer->inFlight() == 0);
}

TEST_CASE("peer: a second answer is dropped", "[peer]") {
  Host host;
  host.says(hold(1, "a"));
  const Held one = host.take("a");
  one.reply(Answer{"first"});
  one.reply(Answer{"second"});
  one.reply(Error(ErrorKind::kBusy, "third"));
  host.loop.drain();
  CHECK(host.hearsOne() == result(1, "first"));
}

TEST_CASE("peer: a reply that is let go of answers INTERNAL_SERVER_ERROR", "[peer]") {
  Host host;
  host.says(call(1, kDrop, {{"process", "p"}}));
  const Json answer = host.hearsOne();
  checkError(answer, 1, -32603, "INTERNAL_SERVER_ERROR");
  CHECK(answer["error"]["data"].contains("incident"));
  CHECK(host.peer->inFlight() == 0);
  host.says(hold(2, "later"));
  { const Held dropped = host.take("later"); }
  host.loop.drain();
  checkError(host.hearsOne(), 2, -32603, "INTERNAL_SERVER_ERROR");
}

TEST_CASE("peer: errors of handlers go out as they are", "[peer]") {
  Host host;
  host.says(hold("e", "a"));
  host.take("a").reply(Error(ErrorKind::kPath, "No such file").withDetail("errno", std::string("ENOENT")));
  const Json answer = host.hearsOne();
  checkError(answer, "e", -32007, "SANDBOX_PATH");
  CHECK(answer["error"]["data"]["details"]["errno"] == "ENOENT");
}

TEST_CASE("peer: requests run at once and answer when they are done", "[peer]") {
  Host host;
  host.says(hold(1, "a"));
  host.says(hold(2, "b"));
  host.says(echo(3));
  CHECK(host.hearsOne() == result(3, "x"));
  host.answer("b");
  CHECK(host.hearsOne() == result(2, "done"));
  host.answer("a");
  CHECK(host.hearsOne() == result(1, "done"));
}

TEST_CASE("peer: an id in flight is refused a second time, and the first goes on", "[peer]") {
  Host host;
  for (const Json& id : {Json(9), Json("nine"), Json(18446744073709551615U), Json(-9223372036854775807LL - 1)}) {
    host.says(hold(id, "a"));
    host.says(hold(id, "b"));
    const Json refusal = host.hearsOne();
    checkError(refusal, nullptr, -32600, "INVALID_REQUEST");
    // The id itself, so that the host finds its request again.
    if (id != Json(18446744073709551615U)) {
      CHECK(refusal["error"]["data"]["details"]["id"] == id);
    }
    CHECK(host.held.count("b") == 0);
    host.answer("a", "first");
    CHECK(host.hearsOne() == result(id, "first"));
    host.says(echo(id, "free again"));
    CHECK(host.hearsOne() == result(id, "free again"));
  }
}

TEST_CASE("peer: the string \"1\" and the number 1 are two ids", "[peer]") {
  Host host;
  host.says(hold(1, "number"));
  host.says(hold("1", "string"));
  CHECK(host.hears().empty());
  host.answer("string", "s");
  CHECK(host.hearsOne() == result("1", "s"));
  host.answer("number", "n");
  CHECK(host.hearsOne() == result(1, "n"));
}

TEST_CASE("peer: requests with id null are requests of their own", "[peer]") {
  Host host;
  host.says(hold(nullptr, "a"));
  host.says(hold(nullptr, "b"));
  host.says(note(kHold, {{"process", "c"}}));
  CHECK(host.hears().empty());
  CHECK(host.peer->inFlight() == 3);
  host.answer("b", "B");
  CHECK(host.hearsOne() == result(nullptr, "B"));
  host.answer("c", "C");
  CHECK(host.hears().empty());
  host.answer("a", "A");
  CHECK(host.hearsOne() == result(nullptr, "A"));
  CHECK(host.peer->inFlight() == 0);
}

TEST_CASE("peer: unknown methods, wrong parameters", "[peer]") {
  Host host;
  host.says(call(1, "no.such", Json::object()));
  checkError(host.hearsOne(), 1, -32601, "METHOD_NOT_FOUND");
  host.says(call(nullptr, "", Json::object()));
  checkError(host.hearsOne(), nullptr, -32601, "METHOD_NOT_FOUND");
  host.says(call(1, "$/cancelRequest", {{"id", 1}}));  // a request, and so no cancellation
  checkError(host.hearsOne(), 1, -32601, "METHOD_NOT_FOUND");

  host.says(call(2, kEcho, {{"handle", "h1"}}));
  const Json answer = host.hearsOne();
  checkError(answer, 2, -32602, "VALIDATION_ERROR");
  CHECK(answer["error"]["data"]["details"]["issues"][0]["path"] == "path");
  host.says(call(3, kEcho, Json::array({"h1", "x"})));
  checkError(host.hearsOne(), 3, -32602, "VALIDATION_ERROR");
  host.says(echo(4, ".."));
  checkError(host.hearsOne(), 4, -32007, "SANDBOX_PATH");
  CHECK(host.started.empty());
  CHECK(host.peer->inFlight() == 0);
}

TEST_CASE("peer: behind a closed gate no method is called, and what runs goes on", "[peer]") {
  Host host;
  bool closed = false;
  host.setGate([&]() -> Result<void> {
    return closed ? Result<void>(Error(ErrorKind::kStopped, "It is over")) : Result<void>();
  });
  host.says(hold(1, "a"));
  closed = true;
  host.says(echo(2));
  checkError(host.hearsOne(), 2, -32003, "SANDBOX_STOPPED");
  host.says(call(3, kEcho, Json::object()));  // its parameters are not looked at
  checkError(host.hearsOne(), 3, -32003, "SANDBOX_STOPPED");
  host.says(note(kEcho, {{"handle", "h1"}, {"path", "x"}}));
  CHECK(host.hears().empty());
  host.answer("a");
  CHECK(host.hearsOne() == result(1, "done"));
  CHECK(host.started == Strings{"a"});
}

TEST_CASE("peer: a notification gets no answer, whatever becomes of it", "[peer]") {
  Host host;
  host.says(note("no.such", Json::object()));
  host.says(note(kEcho, {{"handle", "h1"}, {"path", "ran"}}));
  host.says(note(kEcho, {{"handle", 1}}));
  host.says(note(kDrop, {{"process", "p"}}));
  host.says(note("$/unknown", Json::object()));
  CHECK(host.hears().empty());
  CHECK(host.started == Strings{"ran"});
  CHECK(host.peer->inFlight() == 0);
}

TEST_CASE("peer: what cannot be read is answered with id null, and the next message is served", "[peer]") {
  Host host;
  host.saysText(R"({"jsonrpc":"2.0","method":"x","params":)");
  checkError(host.hearsOne(), nullptr, -32700, "PARSE_ERROR");
  host.saysText(echo(3).dump() + echo(4).dump());
  checkError(host.hearsOne(), nullptr, -32700, "PARSE_ERROR");
  host.peer->onFrame({FrameEvent::Kind::kTooLarge, {}});
  checkError(host.hearsOne(), nullptr, -32600, "INVALID_REQUEST");
  host.peer->onFrame({FrameEvent::Kind::kBadHeader, {}});
  checkError(host.hearsOne(), nullptr, -32700, "PARSE_ERROR");
  host.says(7);
  checkError(host.hearsOne(), nullptr, -32600, "INVALID_REQUEST");
  host.saysText(R"({"jsonrpc":"2.0","id":1.5,"method":"session.resolvePath"})");
  checkError(host.hearsOne(), nullptr, -32600, "INVALID_REQUEST");
  CHECK(host.started.empty());
  host.says(echo(5));
  CHECK(host.hearsOne() == result(5, "x"));
}

TEST_CASE("peer: a batch is answered as one array, in the order of its members", "[peer][batch]") {
  Host host;
  host.says(Json::array({hold(1, "a"), 5, note(kEcho, {{"handle", "h1"}, {"path", "n"}}), echo(nullptr, "null"),
                         call(2, "no.such", Json::object()), hold(3, "b"), echo(4, "quick")}));
  CHECK(host.hears().empty());
  host.answer("b", "B");
  CHECK(host.hears().empty());
  host.answer("a", "A");
  const Json answer = host.hearsOne();
  REQUIRE(answer.is_array());
  REQUIRE(answer.size() == 6);
  CHECK(answer[0] == result(1, "A"));
  checkError(answer[1], nullptr, -32600, "INVALID_REQUEST");
  CHECK(answer[2] == result(nullptr, "null"));
  checkError(answer[3], 2, -32601, "METHOD_NOT_FOUND");
  CHECK(answer[4] == result(3, "B"));
  CHECK(answer[5] == result(4, "quick"));
}

TEST_CASE("peer: the answers of a batch take a bounded amount of memory, and small ones always fit", "[peer][batch]") {
  Host host;
  const std::string large(8U << 20, 'l');
  Json batch = Json::array();
  for (int id = 0; id < 9; ++id) {
    batch.push_back(hold(id, std::to_string(id)));
  }
  batch.push_back(echo(9, "small"));
  host.says(batch);
  for (int id = 0; id < 9; ++id) {
    host.answer(std::to_string(id), large);
  }
  const Json answers = host.hearsOne();
  REQUIRE(answers.size() == 10);
  for (std::size_t id = 0; id < 7; ++id) {
    CHECK(answers[id]["result"]["text"].get_ref<const std::string&>().size() == large.size());
  }
  for (std::size_t id = 7; id < 9; ++id) {
    checkError(answers[id], id, -32006, "SANDBOX_LIMIT");
    CHECK(answers[id]["error"]["data"]["reason"] == "batch");
  }
  CHECK(answers[9]["result"]["text"] == "small");
}

TEST_CASE("peer: batches at the edge", "[peer][batch]") {
  Host host;
  host.says(Json::array());
  checkError(host.hearsOne(), nullptr, -32600, "INVALID_REQUEST");

  host.says(Json::array({1, nullptr, Json::array()}));
  const Json invalid = host.hearsOne();
  REQUIRE(invalid.size() == 3);
  for (const Json& one : invalid) {
    checkError(one, nullptr, -32600, "INVALID_REQUEST");
  }

  host.says(Json::array({note(kEcho, {{"handle", "h1"}, {"path", "n"}}), note("no.such", Json::object())}));
  CHECK(host.hears().empty());
  host.says(Json::array({note(kHold, {{"process", "late"}})}));
  host.answer("late");
  CHECK(host.hears().empty());
  host.says(Json::array({Json{{"jsonrpc", "2.0"}, {"id", 7}, {"result", 1}}}));
  CHECK(host.hears().empty());

  host.says(Json::array({echo(1)}));
  CHECK(host.hearsOne() == Json::array({result(1, "x")}));

  host.says(Json::array({hold(1, "a"), hold(1, "b")}));
  host.answer("a", "A");
  const Json twice = host.hearsOne();
  REQUIRE(twice.size() == 2);
  CHECK(twice[0] == result(1, "A"));
  checkError(twice[1], nullptr, -32600, "INVALID_REQUEST");
}

TEST_CASE("peer: one member of a batch is cancelled", "[peer][batch][cancel]") {
  Host host;
  host.says(Json::array({hold(1, "a"), hold(2, "b"), hold(3, "c")}));
  const Held second = host.take("b");
  second.call.cancellation->onCancel([&] { second.reply(Error(ErrorKind::kCancelled, "The request was cancelled")); });
  host.says(cancel(2));
  CHECK(host.hears().empty());
  host.answer("c");
  host.answer("a");
  const Json answer = host.hearsOne();
  REQUIRE(answer.size() == 3);
  CHECK(answer[0] == result(1, "done"));
  checkError(answer[1], 2, -32800, "CANCELLED");
  CHECK(answer[2] == result(3, "done"));
}

TEST_CASE("cancel: a running request is told, once, and answers in its own way", "[peer][cancel]") {
  Host host;
  host.says(hold(11, "a"));
  const Held one = host.take("a");
  int told = 0;
  one.call.cancellation->onCancel([&] { ++told; });
  const std::stop_token token = one.call.cancellation->token();
  CHECK_FALSE(token.stop_requested());
  host.says(cancel(11));
  CHECK(token.stop_requested());
  host.says(cancel(11));
  CHECK(told == 1);
  CHECK(host.hears().empty());
  one.reply(Answer{"too late to stop"});
  CHECK(host.hearsOne() == result(11, "too late to stop"));
  host.says(cancel(11));
  CHECK(host.hears().empty());
}

TEST_CASE("cancel: a handler that asks afterwards learns of it", "[peer][cancel]") {
  Host host;
  host.says(hold(11, "a"));
  host.says(cancel(11));
  const Held one = host.take("a");
  int told = 0;
  one.call.cancellation->onCancel([&] { ++told; });
  CHECK(told == 1);
}

TEST_CASE("cancel: a request that is gone, and one that never was", "[peer][cancel]") {
  Host host;
  host.says(echo(12));
  CHECK(host.hears().size() == 1);
  for (const Json& id : {Json(12), Json(999), Json("12"), Json(nullptr), Json(1.5), Json::object()}) {
    host.says(cancel(id));
  }
  host.says(note("$/cancelRequest", Json::object()));
  host.says(note("$/cancelRequest", Json::array({12})));
  host.saysText(R"({"jsonrpc":"2.0","method":"$/cancelRequest"})");
  CHECK(host.hears().empty());
  // A number that was used before is a new request.
  host.says(hold(12, "again"));
  CHECK_FALSE(host.take("again").call.cancellation->cancelled());
}

TEST_CASE("cancel: string and number ids do not cross", "[peer][cancel]") {
  Host host;
  host.says(hold(14, "number"));
  host.says(hold("14", "string"));
  host.says(cancel("14"));
  const Held number = host.take("number");
  const Held string = host.take("string");
  CHECK_FALSE(number.call.cancellation->cancelled());
  CHECK(string.call.cancellation->cancelled());
}

TEST_CASE("cancel: an id of null names no request", "[peer][cancel]") {
  Host host;
  host.says(hold(nullptr, "a"));
  host.says(cancel(nullptr));
  CHECK_FALSE(host.take("a").call.cancellation->cancelled());
}

TEST_CASE("cancel: the action may answer, and may be the last that holds the reply", "[peer][cancel]") {
  Host host;
  host.says(hold(1, "a"));
  auto one = std::make_shared<Held>(host.take("a"));
  Cancellation& cancellation = *one->call.cancellation;
  cancellation.onCancel([one] { one->reply(Error(ErrorKind::kCancelled, "stopped")); });
  one.reset();
  host.says(cancel(1));
  checkError(host.hearsOne(), 1, -32800, "CANCELLED");
  CHECK(host.peer->inFlight() == 0);
}

TEST_CASE("serial: one after another, in the order of arrival", "[peer][serial]") {
  Host host({true});
  host.says(hold(1, "a"));
  host.says(echo(2, "b"));
  host.says(note(kHold, {{"process", "c"}}));
  host.says(echo(3, "d"));
  host.says(call(4, kEcho, {{"handle", 1}}));
  host.says(echo(5, "e"));
  CHECK(host.started == Strings{"a"});
  CHECK(host.hears().empty());
  host.answer("a");
  CHECK(host.started == Strings{"a", "b", "c"});
  host.answer("c");
  CHECK(host.started == Strings{"a", "b", "c", "d", "e"});
  const std::vector<Json> heard = host.hears();
  REQUIRE(heard.size() == 5);
  CHECK(heard[0] == result(1, "done"));
  CHECK(heard[1] == result(2, "b"));
  CHECK(heard[2] == result(3, "d"));
  checkError(heard[3], 4, -32602, "VALIDATION_ERROR");
  CHECK(heard[4] == result(5, "e"));
}

TEST_CASE("serial: a waiting request is cancelled without ever running", "[peer][serial][cancel]") {
  Host host({true});
  host.says(hold(1, "a"));
  host.says(hold(2, "b"));
  host.says(hold("2", "c"));
  host.says(cancel(2));
  checkError(host.hearsOne(), 2, -32800, "CANCELLED");
  host.says(cancel(2));
  CHECK(host.hears().empty());
  CHECK(host.started == Strings{"a"});  // the order still holds
  host.says(cancel(1));
  CHECK(host.hears().empty());
  host.answer("a");
  CHECK(host.hearsOne() == result(1, "done"));
  CHECK(host.started == Strings{"a", "c"});
  host.answer("c");
  CHECK(host.hearsOne() == result("2", "done"));
  CHECK(host.peer->inFlight() == 0);
}

TEST_CASE("serial: a method that answers a cancelled request does so when its turn comes", "[peer][serial][cancel]") {
  Host host({true});
  host.says(hold(1, "a"));
  host.says(call(2, kTell, {{"handle", "h1"}}));
  host.says(call(3, kTell, {{"handle", "h1"}}));
  host.says(cancel(2));
  CHECK(host.hears().empty());
  host.answer("a");
  CHECK(host.hears() == std::vector<Json>{result(1, "done"), result(2, "cancelled"), result(3, "not")});
}

TEST_CASE("serial: a queued member of a batch is cancelled", "[peer][serial][batch][cancel]") {
  Host host({true});
  host.says(Json::array({hold(1, "a"), hold(2, "b"), echo(3, "c")}));
  host.says(cancel(2));
  CHECK(host.hears().empty());
  host.answer("a");
  const Json answer = host.hearsOne();
  REQUIRE(answer.size() == 3);
  CHECK(answer[0] == result(1, "done"));
  checkError(answer[1], 2, -32800, "CANCELLED");
  CHECK(answer[2] == result(3, "c"));
}

TEST_CASE("serial: a long chain of quick requests needs no stack", "[peer][serial]") {
  Host host({true});
  host.says(hold("first", "a"));
  constexpr int kMany = 16000;
  for (int i = 0; i < kMany; ++i) {
    host.peer->onFrame({FrameEvent::Kind::kMessage, echo(i, std::to_string(i)).dump()});
  }
  host.answer("a");
  CHECK(host.sink.sent.size() == kMany + 1);
  CHECK(host.peer->inFlight() == 0);
}

TEST_CASE("calls to the host: ids of our own, answers in any order", "[peer][calls]") {
  Host host;
  std::vector<std::string> answers;
  const auto keep = [&answers](Result<boost::json::value> value) {
    answers.push_back(value ? toText(*value) : "error");
  };
  host.peer->callHost("host.authorize", {{"toolset", "t1"}}, keep);
  host.peer->callHost("host.authorize", {{"toolset", "t2"}}, keep);
  const std::vector<Json> calls = host.hears();
  REQUIRE(calls.size() == 2);
  CHECK(calls[0] ==
        Json{{"jsonrpc", "2.0"}, {"id", "sidecar-1"}, {"method", "host.authorize"}, {"params", {{"toolset", "t1"}}}});
  CHECK(calls[1]["id"] == "sidecar-2");
  CHECK(host.peer->callsToHost() == 2);
  // Other work goes on meanwhile.
  host.says(echo(1));
  CHECK(host.hearsOne() == result(1, "x"));
  host.says({{"jsonrpc", "2.0"}, {"id", "sidecar-2"}, {"result", {{"allowed", true}}}});
  CHECK(answers == Strings{R"({"allowed":true})"});
  host.says({{"jsonrpc", "2.0"}, {"id", "sidecar-1"}, {"result", nullptr}});
  CHECK(answers == Strings{R"({"allowed":true})", "null"});
  // A second answer, a stray one, one under a number: nobody waits for them, and nobody is answered.
  host.says({{"jsonrpc", "2.0"}, {"id", "sidecar-1"}, {"result", 1}});
  host.says({{"jsonrpc", "2.0"}, {"id", "sidecar-77"}, {"result", 1}});
  host.says({{"jsonrpc", "2.0"}, {"id", 1}, {"error", {{"code", 1}, {"message", "x"}}}});
  CHECK(answers.size() == 2);
  CHECK(host.hears().empty());
  CHECK(host.peer->callsToHost() == 0);
}

TEST_CASE("calls to the host: the host's id may be the same as ours", "[peer][calls]") {
  Host host;
  std::string answer;
  host.peer->callHost("host.authorize", {}, [&](Result<boost::json::value> value) { answer = toText(*value); });
  host.hears();
  host.says(hold("sidecar-1", "a"));
  host.says(echo("sidecar-2"));
  CHECK(host.hearsOne() == result("sidecar-2", "x"));
  CHECK(answer.empty());
  host.says({{"jsonrpc", "2.0"}, {"id", "sidecar-1"}, {"result", 5}});
  CHECK(answer == "5");
  host.answer("a", "mine");
  CHECK(host.hearsOne() == result("sidecar-1", "mine"));
}

TEST_CASE("calls to the host: its errors", "[peer][calls]") {
  Host host;
  std::vector<Error> errors;
  const auto keep = [&errors](Result<boost::json::value> value) { errors.push_back(value.error()); };
  for (int i = 0; i < 5; ++i) {
    host.peer->callHost("host.artifacts.read", {}, keep);
  }
  const auto fails = [&](int number, Json error) {
    host.says({{"jsonrpc", "2.0"}, {"id", "sidecar-" + std::to_string(number)}, {"error", std::move(error)}});
  };
  host.hears();
  fails(1, {{"code", -32015}, {"message", "gone"}, {"data", {{"code", "SPILL_REFERENCE_UNKNOWN"}}}});
  fails(2, {{"code", -32603}, {"message", "/secret/path"}});
  fails(3, nullptr);
  fails(4, {{"data", {{"code", 7}}}});
  host.says({{"jsonrpc", "2.0"}, {"id", "sidecar-5"}, {"result", {{"allowed", true}}}, {"error", nullptr}});
  REQUIRE(errors.size() == 5);
  CHECK(errors[0].reason == "SPILL_REFERENCE_UNKNOWN");
  for (std::size_t i = 1; i < 5; ++i) {
    CHECK(errors[i].reason.empty());
    CHECK(errors[i].message.find("secret") == std::string::npos);
  }
  CHECK(host.hears().empty());
}

TEST_CASE("calls to the host: once its input has ended, what waits and what comes is refused", "[peer][calls]") {
  Host host;
  Strings outcomes;
  const auto keep = [&outcomes](Result<boost::json::value> value) {
    outcomes.push_back(value ? "ok" : std::string(value.error().kind == ErrorKind::kUnavailable ? "gone" : "other"));
  };
  host.peer->callHost("host.authorize", {}, [&](Result<boost::json::value> value) {
    keep(std::move(value));
    host.peer->callHost("host.authorize", {}, keep);  // asked from within the refusal
  });
  host.peer->callHost("host.authorize", {}, keep);
  host.hears();
  host.peer->answersEnded();
  host.loop.drain();
  CHECK(outcomes == Strings{"gone", "gone", "gone"});
  bool returned = false;
  host.peer->callHost("host.authorize", {}, [&](Result<boost::json::value> value) {
    CHECK(returned);  // never before the call itself has returned
    keep(std::move(value));
  });
  returned = true;
  host.loop.drain();
  CHECK(outcomes.size() == 4);
  host.says({{"jsonrpc", "2.0"}, {"id", "sidecar-1"}, {"result", 1}});
  CHECK(outcomes.size() == 4);
  CHECK(host.hears().empty());
  CHECK(host.peer->callsToHost() == 0);
  // Requests in flight and notifications are another matter: the host may still read.
  host.peer->notifyHost("process.exit", {});
  CHECK(host.hears().size() == 1);
  host.says(echo(1));
  CHECK(host.hearsOne() == result(1, "x"));
}

TEST_CASE("peer: notifications to the host", "[peer]") {
  Host host;
  host.peer->notifyHost("process.exit", {{"process", "p1"}, {"exitCode", 0}});
  CHECK(host.hearsOne() == note("process.exit", {{"process", "p1"}, {"exitCode", 0}}));
}

TEST_CASE("peer: whenIdle", "[peer]") {
  for (const bool serial : {false, true}) {
    Host host({serial});
    int idle = 0;
    host.peer->whenIdle([&] { ++idle; });
    CHECK(idle == 1);  // at once
    host.says(hold(1, "a"));
    host.says(hold(nullptr, "b"));
    host.says(note(kHold, {{"process", "c"}}));
    host.peer->whenIdle([&] { ++idle; });
    host.peer->whenIdle([&] { ++idle; });
    for (const char* name : {"a", "b", "c"}) {
      CHECK(idle == 1);
      host.answer(name);
    }
    CHECK(idle == 3);
    host.says(echo(2));
    CHECK(idle == 3);
  }
}

TEST_CASE("peer: the answer is sent before the peer is idle", "[peer]") {
  Host host;
  host.says(Json::array({hold(1, "a")}));
  std::size_t sent = 0;
  host.peer->whenIdle([&] { sent = host.sink.sent.size(); });
  host.answer("a");
  CHECK(sent == 1);
}

TEST_CASE("peer: abandon cancels all that runs, starts nothing more, and comes to rest", "[peer]") {
  for (const bool serial : {false, true}) {
    INFO("serial " << serial);
    Host host({serial});
    host.says(hold(1, "a"));
    host.says(hold(2, "b"));
    host.says(hold(nullptr, "c"));
    host.says(note(kHold, {{"process", "d"}}));
    const std::size_t running = host.held.size();
    CHECK(running == (serial ? 1 : 4));
    bool idle = false;
    bool refused = false;
    host.peer->callHost("host.authorize", {}, [&](Result<boost::json::value> value) { refused = value.has_error(); });
    host.peer->whenIdle([&] { idle = true; });
    host.peer->abandon();
    CHECK(refused);
    for (const auto& [name, one] : host.held) {
      INFO(name);
      CHECK(one.call.cancellation->cancelled());
    }
    host.says(hold(5, "e"));
    CHECK(host.held.size() == running);
    CHECK_FALSE(idle);  // what runs is waited for
    while (!host.held.empty()) {
      host.answer(host.held.begin()->first);
    }
    CHECK(host.started.size() == running);
    CHECK(idle);
    CHECK(host.peer->inFlight() == 0);
  }
}

TEST_CASE("peer: beyond the ceiling of requests in flight: SANDBOX_BUSY", "[peer]") {
  Host host;
  const auto raw = [&](const Json& message) { host.peer->onFrame({FrameEvent::Kind::kMessage, message.dump()}); };
  for (std::size_t i = 0; i + 2 < limits::kRequestsInFlight; ++i) {
    raw(hold(i, "many"));
  }
  raw(hold(nullptr, "null"));
  raw(note(kHold, {{"process", "note"}}));
  CHECK(host.hears().empty());
  CHECK(host.peer->inFlight() == limits::kRequestsInFlight);
  host.says(echo("over"));
  checkError(host.hearsOne(), "over", -32002, "SANDBOX_BUSY");
  host.says(Json::array({echo("over"), echo(nullptr)}));
  const Json batch = host.hearsOne();
  REQUIRE(batch.size() == 2);
  checkError(batch[0], "over", -32002, "SANDBOX_BUSY");
  checkError(batch[1], nullptr, -32002, "SANDBOX_BUSY");
  host.says(note(kEcho, {{"handle", "h1"}, {"path", "dropped"}}));
  CHECK(host.hears().empty());
  CHECK(host.started.size() == limits::kRequestsInFlight);
  // One answer makes room for one.
  host.answer("null");
  CHECK(host.hears().size() == 1);
  host.says(echo("fits"));
  CHECK(host.hearsOne() == result("fits", "x"));
}

TEST_CASE("peer: replies from other threads", "[peer][threads]") {
  Host host;
  constexpr int kMany = 200;
  for (int i = 0; i < kMany; ++i) {
    host.says(hold(i, "p" + std::to_string(i)));
  }
  std::vector<std::thread> threads;
  for (int part = 0; part < 4; ++part) {
    std::vector<Held> mine;
    for (int i = part; i < kMany; i += 4) {
      mine.push_back(host.take("p" + std::to_string(i)));
    }
    threads.emplace_back([mine = std::move(mine)]() mutable {
      for (std::size_t i = 0; i < mine.size(); ++i) {
        if (i % 3 == 0) {
          mine[i].reply(Error(ErrorKind::kInternal, "no").withPrivate("secret"));
        } else if (i % 3 == 1) {
          mine[i].reply(Answer{"from a thread"});
        }
        // and every third is dropped here
      }
      mine.clear();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(host.sink.sent.empty());  // only the loop sends
  host.loop.drain();
  std::set<int> ids;
  for (const Json& message : host.hears()) {
    ids.insert(message["id"].get<int>());
    CHECK(message.contains("error") != message.contains("result"));
  }
  CHECK(ids.size() == kMany);
  CHECK(host.peer->inFlight() == 0);
}

TEST_CASE("peer: a reply may outlive the peer", "[peer]") {
  Host host;
  host.says(hold(1, "a"));
  host.says(hold(2, "b"));
  const Held one = host.take("a");
  host.peer.reset();
  one.reply(Answer{"nobody listens"});
  host.held.clear();
  host.loop.drain();
  CHECK(host.hears().empty());
}

}  // namespace stitchkit
