// One frame's text to messages, against JSON-RPC 2.0 as another parser and a few lines read it.
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rpc/base/limits.h"
#include "rpc/base/utf8.h"
#include "rpc/message.h"
#include "tests/fuzz/require.h"

namespace stitchkit {
namespace {

using Json = nlohmann::json;

/// Boost.JSON reads decimal fractions to within a few units in the last place.
bool isSame(const Json& left, const Json& right) {
  if (left.is_number_float() && right.is_number()) {
    const double a = left.get<double>();
    const double b = right.get<double>();
    return a == b || std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b));
  }
  if (left.type() != right.type() && !(left.is_number_integer() && right.is_number_integer())) {
    return false;
  }
  if (!left.is_structured()) {
    return left == right;
  }
  if (left.size() != right.size()) {
    return false;
  }
  for (auto it = left.begin(); it != left.end(); ++it) {
    if (left.is_object() ? !right.contains(it.key()) || !isSame(*it, right[it.key()])
                         : !isSame(*it, right[static_cast<std::size_t>(it - left.begin())])) {
      return false;
    }
  }
  return true;
}

Json parsed(const boost::json::value& value) {
  return Json::parse(toText(value));
}

bool isId(const Json& id) {
  return id.is_null() || id.is_string() || id.is_number_integer();
}

/// The id that an answer has to carry: null for an unusable one.
Json answerId(const Json& message) {
  const Json id = message.is_object() && message.contains("id") ? message["id"] : Json();
  return isId(id) ? id : Json();
}

bool isRequest(const Json& message) {
  return message.is_object() && message.value("jsonrpc", Json()) == "2.0" &&
         message.value("method", Json()).is_string() && isId(message.value("id", Json())) &&
         (!message.contains("params") || message["params"].is_structured());
}

bool isResponse(const Json& message) {
  return message.is_object() && message.value("jsonrpc", Json()) == "2.0" && !message.contains("method") &&
         message.contains("id") && isId(message["id"]) && (message.contains("result") || message.contains("error"));
}

/// An exponent of three digits: Boost.JSON takes even a zero with one (`0e999`) for no number, and then nobody reads
/// it.
bool hasHugeExponent(std::string_view text) {
  for (std::size_t i = 1; i + 3 < text.size(); ++i) {
    const bool isExponent = (text[i] == 'e' || text[i] == 'E') && text[i - 1] >= '0' && text[i - 1] <= '9';
    const std::string_view digits = text.substr(i + (text[i + 1] == '+' ? 2 : 1), 3);
    if (isExponent && digits.size() == 3 && digits.find_first_not_of("0123456789") == std::string_view::npos) {
      return true;
    }
  }
  return false;
}

void checkMessage(const Message& message, const Json& wanted) {
  if (const auto* request = std::get_if<RequestMessage>(&message)) {
    FUZZ_REQUIRE(isRequest(wanted));
    FUZZ_REQUIRE(request->method == wanted["method"]);
    FUZZ_REQUIRE(request->id.has_value() == wanted.contains("id"));
    FUZZ_REQUIRE(!request->id || parsed(*request->id) == wanted["id"]);
    FUZZ_REQUIRE(isSame(wanted.value("params", Json()), parsed(request->params)));
  } else if (const auto* response = std::get_if<ResponseMessage>(&message)) {
    FUZZ_REQUIRE(isResponse(wanted));
    FUZZ_REQUIRE(parsed(response->id) == wanted["id"]);
    FUZZ_REQUIRE(response->failed == wanted.contains("error"));
    FUZZ_REQUIRE(isSame(wanted[response->failed ? "error" : "result"], parsed(response->payload)));
  } else {
    const auto& invalid = std::get<InvalidMessage>(message);
    FUZZ_REQUIRE(!isRequest(wanted) && !isResponse(wanted));
    FUZZ_REQUIRE(invalid.error.kind == ErrorKind::kInvalidRequest);
    FUZZ_REQUIRE(parsed(invalid.id) == answerId(wanted));
  }
}

}  // namespace
}  // namespace stitchkit

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stitchkit;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Result<Frame> frame = parseFrame(text);
  const Json value = Json::parse(text, nullptr, false);
  if (!frame) {
    const ErrorKind kind = frame.error().kind;
    FUZZ_REQUIRE(kind == ErrorKind::kParse || kind == ErrorKind::kInvalidRequest);
    // Only the other parser passes over a byte-order mark, and takes a NUL for the end.
    const bool isLenient =
        text.starts_with("\xEF\xBB\xBF") || text.find('\0') != std::string::npos || hasHugeExponent(text);
    FUZZ_REQUIRE(kind != ErrorKind::kParse || value.is_discarded() || isLenient);
    return 0;
  }
  FUZZ_REQUIRE(!value.is_discarded() && isUtf8(text));
  FUZZ_REQUIRE(frame->batch == value.is_array());
  if (!frame->batch) {
    FUZZ_REQUIRE(frame->messages.size() == 1);
    checkMessage(frame->messages.front(), value);
    return 0;
  }
  FUZZ_REQUIRE(!frame->messages.empty() && frame->messages.size() == value.size());
  for (std::size_t i = 0; i < value.size(); ++i) {
    checkMessage(frame->messages[i], value[i]);
  }
  return 0;
}
