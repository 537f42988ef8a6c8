#include "rpc/message.h"

#include <pthread.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "rpc/base/limits.h"
#include "rpc/base/log.h"
#include "rpc/wire_error.h"

namespace stitchkit {
namespace {

using Json = nlohmann::json;  // the second reader of what is sent

std::string repeated(std::string_view unit, std::size_t times) {
  std::string text;
  text.reserve(unit.size() * times);
  for (std::size_t i = 0; i < times; ++i) {
    text += unit;
  }
  return text;
}

std::string request(std::string_view rest) {
  return R"({"jsonrpc":"2.0","id":1,"method":"m")" + std::string(rest) + "}";
}

std::string nested(std::string_view open, std::string_view inner, std::string_view close, std::size_t levels) {
  return repeated(open, levels) + std::string(inner) + repeated(close, levels);
}

/// "ok", or the stable name of the error that the frame as a whole is refused with.
std::string verdict(std::string_view text) {
  const Result<Frame> frame = parseFrame(text);
  return frame ? "ok" : std::string(wireCode(frame.error().kind).name);
}

/// The one message of a frame that is no batch.
Message only(std::string_view text) {
  Result<Frame> frame = parseFrame(text);
  INFO(text);
  REQUIRE(frame.has_value());
  REQUIRE_FALSE(frame->batch);
  REQUIRE(frame->messages.size() == 1);
  return std::move(frame->messages.front());
}

RequestMessage onlyRequest(std::string_view text) {
  Message message = only(text);
  INFO(text);
  REQUIRE(std::holds_alternative<RequestMessage>(message));
  return std::get<RequestMessage>(std::move(message));
}

/// What a frame that is no request is answered with: the id.
Json idOfInvalid(std::string_view text) {
  const Message message = only(text);
  INFO(text);
  REQUIRE(std::holds_alternative<InvalidMessage>(message));
  const auto& invalid = std::get<InvalidMessage>(message);
  CHECK(invalid.error.kind == ErrorKind::kInvalidRequest);
  return Json::parse(toText(invalid.id));
}

/// Runs `work` on a thread whose stack is a small part of the ordinary 8 MiB.
void onSmallStack(std::function<void()> work) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr std::size_t kStackBytes = 512U * 1024;  // instrumented frames are several times as large
#else
  constexpr std::size_t kStackBytes = 64U * 1024;
#endif
  pthread_attr_t attributes;
  REQUIRE(::pthread_attr_init(&attributes) == 0);
  REQUIRE(::pthread_attr_setstacksize(&attributes, kStackBytes) == 0);
  pthread_t thread{};
  const auto run = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  REQUIRE(::pthread_create(&thread, &attributes, run, &work) == 0);
  ::pthread_attr_destroy(&attributes);
  REQUIRE(::pthread_join(thread, nullptr) == 0);
}

}  // namespace

TEST_CASE("parse: text that is not one JSON value is a parse error", "[message]") {
  const std::vector<std::string> broken = {
      "",
      " ",
      "{",
      "hello",
      R"({"jsonrpc":"2.0","method":"x","params":)",
      R"({"jsonrpc":"2.0","id":3,"method":"ping"}{"jsonrpc":"2.0","id":4,"method":"ping"})",
      R"({"jsonrpc":"2.0","id":3,"method":"ping"} {"jsonrpc":"2.0","id":4,"method":"ping"})",
      "[1] 2",
      "1 2",
      request("") + "x",
      request("") + std::string("\0", 1),
      std::string("\0", 1) + request(""),
      "\xEF\xBB\xBF" + request(""),  // the mark belongs to the stream's start, not to a message
      R"({"a":1,})",
      "[1,]",
      "[01]",
      "[+1]",
      "[.5]",
      "[1.]",
      "[NaN]",
      "[Infinity]",
      "[-Infinity]",
      "[nul]",
      "// comment\n{}",
      "{'a':1}",
      "\"\t\"",
      "\"\\x41\"",
  };
  for (const std::string& text : broken) {
    INFO(text);
    CHECK(verdict(text) == "PARSE_ERROR");
  }
}

TEST_CASE("parse: white space around the value is JSON", "[message]") {
  CHECK(onlyRequest(" \t" + request("") + "\r").method == "m");
  CHECK(verdict(request("") + " \r\n\t ") == "ok");
}

TEST_CASE("parse: invalid UTF-8 and lone surrogates are parse errors, wherever they stand", "[message]") {
  const std::vector<std::string> bad = {
      "\xFF",    "\xC0\x80", "\xED\xA0\x80",   "\xF4\x90\x80\x80", "\xC3",           "\xE2\x82", "\x80",      "\\ud800",
      "\\udc00", "\\ud800x", "\\ud800\\u0041", "\\udc00\\ud800",   "\\ud83d\\ud83d", "\\ud80",   "\\ud800\\",
  };
  for (const std::string& text : bad) {
    INFO(text);
    CHECK(verdict(request(R"(,"params":{"text":")" + text + "\"}")) == "PARSE_ERROR");
    CHECK(verdict(request(R"(,"params":{")" + text + "\":1}")) == "PARSE_ERROR");
    CHECK(verdict(R"({"jsonrpc":"2.0","id":")" + text + R"(","method":"m"})") == "PARSE_ERROR");
  }
  const RequestMessage good = onlyRequest(request(R"(,"params":{"text":"\ud83d\ude00 \u0000 é"})"));
  const auto& text = good.params.at("text").as_string();
  CHECK(std::string(text.data(), text.size()) == std::string("\xF0\x9F\x98\x80 \0 \xC3\xA9", 9));
}

TEST_CASE("parse: numbers that are not finite are refused", "[message]") {
  for (const char* number : {"1e400", "-1e400", "1e999999999999999999", "123456789e1000"}) {
    INFO(number);
    CHECK(verdict(request(R"(,"params":{"n":)" + std::string(number) + "}")) == "PARSE_ERROR");
  }
  CHECK(verdict(request(R"(,"params":{"n":1e-400})")) == "ok");
  CHECK(verdict(request(R"(,"params":{"n":1.7976931348623157e308})")) == "ok");
}

TEST_CASE("parse: one member name twice is refused at any depth", "[message]") {
  const std::vector<std::string> twice = {
      R"({"jsonrpc":"2.0","id":8,"method":"ping","method":"session.delete","params":{"session":"s"}})",
      R"({"jsonrpc":"2.0","jsonrpc":"2.0","id":8,"method":"m"})",
      request(R"(,"id":1)"),
      request(R"(,"params":{"a":1,"b":2,"a":3})"),
      request(R"(,"params":{"a":1,"\u0061":1})"),
      request(R"(,"params":{"":1,"":1})"),
      request(R"(,"params":{"x":[{"y":{"a":null,"a":null}}]})"),
      request(R"(,"params":{"a":{"deep":1,"deep":2},"a":{}})"),
      "[" + request("") + "," + request(R"(,"params":{"k":0,"k":0})") + "]",
      "[" + nested(R"({"n":)", R"({"a":1,"a":1})", "}", 60) + "]",
  };
  for (const std::string& text : twice) {
    INFO(text);
    CHECK(verdict(text) == "INVALID_REQUEST");
  }
  // The same name in different objects, and names that differ in case or form, are no repetition.
  CHECK(verdict(request(R"(,"params":{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}],"A":1})")) == "ok");
  std::string many = R"({"jsonrpc":"2.0","id":1,"method":"m","params":{)";
  for (int i = 0; i < 5000; ++i) {
    many += "\"k" + std::to_string(i) + "\":{},";
  }
  CHECK(verdict(many + "\"last\":0}}") == "ok");
  CHECK(verdict(many + "\"k17\":0}}") == "INVALID_REQUEST");
}

TEST_CASE("parse: 64 levels are read, 65 are not", "[message]") {
  static_assert(limits::kMessageDepth == 64);
  // The message itself is the first level.
  CHECK(verdict(request(",\"params\":" + nested("[", "", "]", 63))) == "ok");
  CHECK(verdict(request(",\"params\":" + nested("[", "", "]", 64))) == "INVALID_REQUEST");
  CHECK(verdict(request(",\"params\":" + nested("{\"a\":", "1", "}", 63))) == "ok");
  CHECK(verdict(request(",\"params\":" + nested("{\"a\":", "1", "}", 64))) == "INVALID_REQUEST");
  CHECK(verdict(nested("[", "", "]", 64)) == "ok");
  CHECK(verdict(nested("[", "", "]", 65)) == "INVALID_REQUEST");
}

TEST_CASE("parse: a depth bomb is refused at once, on a small stack too", "[message]") {
  const std::vector<std::string> bombs = {
      request(",\"params\":" + nested("[", "", "]", 100000)),
      request(",\"params\":" + nested("{\"a\":", "1", "}", 100000)),
      request(",\"params\":" + nested("[", "", "]", 1000)),
      repeated("[", 100000),
      repeated("{\"a\":[", 100000),
  };
  std::vector<std::string> verdicts;
  std::string deepest;
  const auto begin = std::chrono::steady_clock::now();
  onSmallStack([&] {
    for (const std::string& bomb : bombs) {
      verdicts.push_back(verdict(bomb));
    }
    // What passes is copied, written and destroyed on the same stack.
    const Result<Frame> frame = parseFrame(request(",\"params\":" + nested("[", "", "]", 63)));
    const boost::json::value copy = std::get<RequestMessage>(frame->messages.front()).params;
    deepest = resultText(1, copy);
  });
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(15));
  CHECK(verdicts == std::vector<std::string>(bombs.size(), "INVALID_REQUEST"));
  CHECK(Json::parse(deepest)["result"].dump() == nested("[", "", "]", 63));
}

TEST_CASE("parse: the number of values is bounded", "[message]") {
  const std::size_t most = limits::kMessageValues;
  // The message, its three members and the array itself are values as well.
  CHECK(verdict(request(",\"params\":[" + repeated("0,", most - 6) + "0]")) == "ok");
  CHECK(verdict(request(",\"params\":[" + repeated("0,", most) + "0]")) == "INVALID_REQUEST");
  CHECK(verdict(request(",\"params\":[" + repeated("[],", most) + "0]")) == "INVALID_REQUEST");
}

TEST_CASE("parse: ids are kept exactly", "[message]") {
  for (const char* id : {"9007199254740993", "-1", "0", "\"\"", "\"1\"", "1", "18446744073709551615",
                         "9223372036854775807", "-9223372036854775808", "null", R"("é\u0000\"")", R"("sidecar-1")"}) {
    const std::string text = R"({"jsonrpc":"2.0","method":"m","id":)" + std::string(id) + "}";
    const RequestMessage message = onlyRequest(text);
    REQUIRE(message.id.has_value());
    const Json answer = Json::parse(resultText(*message.id, true));
    INFO(id);
    CHECK(answer["id"] == Json::parse(id));
    CHECK(answer["id"].dump() == Json::parse(id).dump());
  }
  CHECK_FALSE(onlyRequest(R"({"jsonrpc":"2.0","method":"m"})").id.has_value());
}

TEST_CASE("parse: ids of other kinds are refused with id null", "[message]") {
  for (const char* id : {"1.5", "1.0", "1e2", "true", "false", "{}", "[]", "[1]", "18446744073709551616",
                         "-9223372036854775809", "123456789012345678901"}) {
    CHECK(idOfInvalid(R"({"jsonrpc":"2.0","method":"m","id":)" + std::string(id) + "}").is_null());
  }
}

TEST_CASE("parse: what is no request is refused under its own id", "[message]") {
  CHECK(idOfInvalid("1").is_null());
  CHECK(idOfInvalid("null").is_null());
  CHECK(idOfInvalid("\"x\"").is_null());
  CHECK(idOfInvalid("{}").is_null());
  CHECK(idOfInvalid(R"({"id":5,"method":"m"})") == 5);
  CHECK(idOfInvalid(R"({"jsonrpc":"1.0","id":5,"method":"m"})") == 5);
  CHECK(idOfInvalid(R"({"jsonrpc":2.0,"id":5,"method":"m"})") == 5);
  CHECK(idOfInvalid(R"({"jsonrpc":"2.0","id":"a"})") == "a");
  CHECK(idOfInvalid(R"({"jsonrpc":"2.0","id":5,"method":7})") == 5);
  CHECK(idOfInvalid(R"({"jsonrpc":"2.0","id":5,"method":null})") == 5);
  CHECK(idOfInvalid(R"({"JSONRPC":"2.0","id":5,"method":"m"})") == 5);
}

TEST_CASE("parse: params are an object, an array or absent", "[message]") {
  CHECK(onlyRequest(request("")).params.is_null());
  CHECK(onlyRequest(request(R"(,"params":{})")).params.is_object());
  CHECK(onlyRequest(request(R"(,"params":{"a":1})")).params.at("a") == 1);
  CHECK(onlyRequest(request(R"(,"params":[1])")).params.is_array());
  for (const char* params : {"null", "1", "\"x\"", "true", "false"}) {
    CHECK(idOfInvalid(request(R"(,"params":)" + std::string(params))) == 1);
  }
}

TEST_CASE("parse: batches", "[message]") {
  CHECK(verdict("[]") == "INVALID_REQUEST");
  CHECK(verdict("[ ]") == "INVALID_REQUEST");
  const Result<Frame> mixed = parseFrame(
      R"([1,{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":7,"result":1},[],{"jsonrpc":"2.0","id":null,"method":"m"}])");
  REQUIRE(mixed.has_value());
  CHECK(mixed->batch);
  REQUIRE(mixed->messages.size() == 5);
  CHECK(std::holds_alternative<InvalidMessage>(mixed->messages[0]));
  CHECK_FALSE(std::get<RequestMessage>(mixed->messages[1]).id.has_value());
  CHECK(std::holds_alternative<ResponseMessage>(mixed->messages[2]));
  CHECK(std::holds_alternative<InvalidMessage>(mixed->messages[3]));
  CHECK(std::get<RequestMessage>(mixed->messages[4]).id->is_null());
  CHECK(parseFrame("[" + request("") + "]")->batch);
  CHECK(verdict("[" + repeated("1,", limits::kBatchMembers - 1) + "1]") == "ok");
  CHECK(verdict("[" + repeated("1,", limits::kBatchMembers) + "1]") == "INVALID_REQUEST");
}

TEST_CASE("parse: answers of the host", "[message]") {
  const Message good = only(R"({"jsonrpc":"2.0","id":"sidecar-1","result":{"allowed":true}})");
  REQUIRE(std::holds_alternative<ResponseMessage>(good));
  CHECK_FALSE(std::get<ResponseMessage>(good).failed);
  CHECK(std::get<ResponseMessage>(good).payload.at("allowed") == true);
  const Message null = only(R"({"jsonrpc":"2.0","id":"sidecar-1","result":null})");
  CHECK_FALSE(std::get<ResponseMessage>(null).failed);
  const Message bad = only(R"({"jsonrpc":"2.0","id":"sidecar-1","error":{"code":1,"message":"no"}})");
  CHECK(std::get<ResponseMessage>(bad).failed);
  // What a host sends that cannot read us. Nothing is ever answered to an answer.
  CHECK(std::holds_alternative<ResponseMessage>(
      only(R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}})")));
  // Both: whatever was meant, it is no success, and the call must not wait for ever.
  const Message both = only(R"({"jsonrpc":"2.0","id":"sidecar-1","result":1,"error":null})");
  REQUIRE(std::holds_alternative<ResponseMessage>(both));
  CHECK(std::get<ResponseMessage>(both).failed);
}

TEST_CASE("write: what is sent reads the same with another parser", "[message]") {
  const std::string long1 = repeated("plain ascii text, ", 80000);
  std::string escapes;
  std::mt19937 random(3);
  for (int i = 0; i < 300000; ++i) {
    escapes += static_cast<char>(random() % 0x80);
  }
  const std::string wide = repeated("\xF0\x9F\x98\x80\xE2\x82\xAC\xC3\xA9z", 50000);
  for (std::size_t around = 500; around < 530; ++around) {  // around the first buffer's size
    const std::string text(around, 'q');
    if (toText(boost::json::string(text)) != Json(text).dump()) {
      FAIL(around);
    }
  }
  for (const std::string& text :
       {long1, escapes, wide, std::string(), std::string("\0", 1), std::string("\x7F/\\\"")}) {
    const std::string ours = toText(boost::json::string(text));
    CHECK(Json::parse(ours).get<std::string>() == text);
    CHECK(ours.size() == Json(text).dump().size());
    CHECK(ours == Json(text).dump());
  }
  const std::string document = R"({"a":[1,-1,18446744073709551615,null,true,{"b":"\u001f\n"}],"":{},"é":[[],{}]})";
  CHECK(Json::parse(
            toText(std::get<RequestMessage>(parseFrame(request(",\"params\":" + document))->messages[0]).params)) ==
        Json::parse(document));
}

TEST_CASE("write: the shapes of the four kinds of message", "[message]") {
  CHECK(Json::parse(resultText(7, {{"x", 1}})) == Json::parse(R"({"jsonrpc":"2.0","id":7,"result":{"x":1}})"));
  CHECK(Json::parse(resultText("7", nullptr)) == Json::parse(R"({"jsonrpc":"2.0","id":"7","result":null})"));
  CHECK(Json::parse(notificationText("n", {{"x", 1}})) ==
        Json::parse(R"({"jsonrpc":"2.0","method":"n","params":{"x":1}})"));
  CHECK(Json::parse(requestText("sidecar-1", "m", {})) ==
        Json::parse(R"({"jsonrpc":"2.0","id":"sidecar-1","method":"m","params":{}})"));
  const Json error = Json::parse(errorText(nullptr, Error(ErrorKind::kBusy, "wait")));
  CHECK(error == Json::parse(R"({"jsonrpc":"2.0","id":null,
                                 "error":{"code":-32002,"message":"wait","data":{"code":"SANDBOX_BUSY"}}})"));
  CHECK(resultText(1, "a\nb\r").find_first_of("\r\n") == std::string::npos);
}

TEST_CASE("errors: the table of PROTOCOL.md, section 2, whole", "[wire-error]") {
  const std::vector<std::tuple<ErrorKind, int, std::string>> table = {
      {ErrorKind::kParse, -32700, "PARSE_ERROR"},
      {ErrorKind::kInvalidRequest, -32600, "INVALID_REQUEST"},
      {ErrorKind::kMethodNotFound, -32601, "METHOD_NOT_FOUND"},
      {ErrorKind::kValidation, -32602, "VALIDATION_ERROR"},
      {ErrorKind::kInternal, -32603, "INTERNAL_SERVER_ERROR"},
      {ErrorKind::kCancelled, -32800, "CANCELLED"},
      {ErrorKind::kUnavailable, -32001, "SANDBOX_UNAVAILABLE"},
      {ErrorKind::kBusy, -32002, "SANDBOX_BUSY"},
      {ErrorKind::kStopped, -32003, "SANDBOX_STOPPED"},
      {ErrorKind::kStateMismatch, -32004, "SANDBOX_STATE_MISMATCH"},
      {ErrorKind::kNetworkDenied, -32005, "SANDBOX_NETWORK_DENIED"},
      {ErrorKind::kLimit, -32006, "SANDBOX_LIMIT"},
      {ErrorKind::kPath, -32007, "SANDBOX_PATH"},
      {ErrorKind::kBadRequest, -32010, "BAD_REQUEST"},
      {ErrorKind::kForbidden, -32011, "FORBIDDEN"},
      {ErrorKind::kNotFound, -32012, "NOT_FOUND"},
      {ErrorKind::kConflict, -32013, "CONFLICT"},
      {ErrorKind::kInsufficient, -32014, "SANDBOX_INSUFFICIENT"},
      {ErrorKind::kSpillReferenceUnknown, -32015, "SPILL_REFERENCE_UNKNOWN"},
  };
  // The kinds are numbered without a gap, so that the table is whole when it reaches the last.
  CHECK(table.size() == static_cast<std::size_t>(ErrorKind::kSpillReferenceUnknown) + 1);
  std::set<ErrorKind> seen;
  for (const auto& [kind, number, name] : table) {
    seen.insert(kind);
    const Json error = Json::parse(errorText(1, Error(kind, "text")))["error"];
    CHECK(error["code"] == number);
    CHECK(error["data"]["code"] == name);
    CHECK(error["message"] == "text");
  }
  CHECK(seen.size() == table.size());
}

TEST_CASE("errors: details, hint and reason are there when they are given", "[wire-error]") {
  const Error error = Error(ErrorKind::kValidation, "no")
                          .withHint("do this")
                          .withReason("why")
                          .withDetail("number", std::int64_t{9007199254740993})
                          .withDetail("flag", true)
                          .withDetail("text", std::string("x"))
                          .withDetail("issues", std::vector<ValidationIssue>{{"a.0", "is bad"}, {"", "all"}});
  CHECK(Json::parse(errorText(1, error))["error"]["data"] == Json::parse(R"({
    "code":"VALIDATION_ERROR","hint":"do this","reason":"why",
    "details":{"number":9007199254740993,"flag":true,"text":"x",
               "issues":[{"path":"a.0","message":"is bad"},{"path":"","message":"all"}]}})"));
  CHECK(Json::parse(errorText(1, Error(ErrorKind::kBusy, "x")))["error"]["data"] == Json{{"code", "SANDBOX_BUSY"}});
}

TEST_CASE("errors: an incident is named once in 65,536 and more", "[wire-error]") {
  setLogLevel(LogLevel::kError);
  std::set<std::string> incidents;
  for (int i = 0; i < 70000; ++i) {
    const boost::json::object wire = toWireError(Error(ErrorKind::kInternal, "no").withPrivate("cause"));
    incidents.emplace(wire.at("data").at("incident").as_string().c_str());
  }
  setLogLevel(LogLevel::kInfo);
  CHECK(incidents.size() == 70000);
}

TEST_CASE("errors: no text of them is without a bound", "[wire-error]") {
  const std::string far(1'000'000, 'x');
  const boost::json::object wire =
      toWireError(Error(ErrorKind::kValidation, far).withDetail("issues", std::vector<ValidationIssue>{{far, far}}));
  CHECK(toText(wire).size() < 5000);
}

TEST_CASE("errors: a private detail never crosses the wire, its incident does", "[wire-error]") {
  const std::string secret = "/home/host/secret: Permission denied";
  const std::string first = errorText(1, Error(ErrorKind::kInternal, "It failed").withPrivate(secret));
  const std::string second = errorText(1, internalError("It failed", "open " + secret, 13));
  for (const std::string& text : {first, second}) {
    CHECK(text.find("secret") == std::string::npos);
    CHECK(text.find("denied") == std::string::npos);
    CHECK(text.find("EACCES") == std::string::npos);
    CHECK_FALSE(Json::parse(text)["error"]["data"]["incident"].get<std::string>().empty());
  }
  CHECK(Json::parse(first)["error"]["data"]["incident"] != Json::parse(second)["error"]["data"]["incident"]);
}

TEST_CASE("errors: text of a guest that is no UTF-8 is made so", "[wire-error]") {
  const std::string bad = "name \xFF\xFE\xC3";
  const Error error = Error(ErrorKind::kPath, bad)
                          .withHint(bad)
                          .withDetail("errno", bad)
                          .withDetail("issues", std::vector<ValidationIssue>{{bad, bad}});
  const std::string good = "name \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD";
  const Json read = Json::parse(errorText("id", error))["error"];  // throws on invalid UTF-8
  CHECK(read["message"] == good);
  CHECK(read["data"]["hint"] == good);
  CHECK(read["data"]["details"]["errno"] == good);
  CHECK(read["data"]["details"]["issues"][0] == Json{{"path", good}, {"message", good}});
}

TEST_CASE("errors: an errno by its name", "[wire-error]") {
  CHECK(errnoName(2) == "ENOENT");
  CHECK(errnoName(20) == "ENOTDIR");
  CHECK(errnoName(99999) == "E99999");
  const Json error = Json::parse(errorText(1, pathError("There is no such file", 2)))["error"];
  CHECK(error["data"]["details"] == Json{{"errno", "ENOENT"}});
  CHECK(error["code"] == -32007);
}

}  // namespace stitchkit
