#include "rpc/message.h"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/serializer.hpp>
#include <boost/json/value_stack.hpp>

#include <algorithm>
#include <cmath>

#include "rpc/base/limits.h"
#include "rpc/wire_error.h"

namespace stitchkit {
namespace {

namespace json = boost::json;
using boost::system::error_code;

enum class Refusal : std::uint8_t { kNone, kTooManyValues, kNotFinite };

// Builds the value, counts what it costs, and counts members so that a repeated name can be told afterwards.
struct Handler {
  static constexpr std::size_t max_object_size = limits::kMessageValues;
  static constexpr std::size_t max_array_size = limits::kMessageValues;
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();

  json::value_stack stack;
  std::size_t values = 0;
  std::size_t members = 0;
  Refusal refusal = Refusal::kNone;

  bool count(error_code& ec) {
    if (++values > limits::kMessageValues) {
      refusal = Refusal::kTooManyValues;
      ec = json::error::array_too_large;
      return false;
    }
    return true;
  }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return true; }
  bool on_object_end(std::size_t n, error_code& ec) {
    members += n;
    stack.push_object(n);
    return count(ec);
  }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(std::size_t n, error_code& ec) {
    stack.push_array(n);
    return count(ec);
  }
  bool on_key_part(json::string_view part, std::size_t, error_code&) {
    stack.push_chars(part);
    return true;
  }
  bool on_key(json::string_view part, std::size_t, error_code&) {
    stack.push_key(part);
    return true;
  }
  bool on_string_part(json::string_view part, std::size_t, error_code&) {
    stack.push_chars(part);
    return true;
  }
  bool on_string(json::string_view part, std::size_t, error_code& ec) {
    stack.push_string(part);
    return count(ec);
  }
  bool on_number_part(json::string_view, error_code&) { return true; }
  bool on_int64(std::int64_t number, json::string_view, error_code& ec) {
    stack.push_int64(number);
    return count(ec);
  }
  bool on_uint64(std::uint64_t number, json::string_view, error_code& ec) {
    stack.push_uint64(number);
    return count(ec);
  }
  bool on_double(double number, json::string_view, error_code& ec) {
    if (!std::isfinite(number)) {
      refusal = Refusal::kNotFinite;
      ec = json::error::exponent_overflow;
      return false;
    }
    stack.push_double(number);
    return count(ec);
  }
  bool on_bool(bool value, error_code& ec) {
    stack.push_bool(value);
    return count(ec);
  }
  bool on_null(error_code& ec) {
    stack.push_null();
    return count(ec);
  }
  bool on_comment_part(json::string_view, error_code&) { return true; }
  bool on_comment(json::string_view, error_code&) { return true; }
};

// Recursion is bounded by limits::kMessageDepth, which the parser has enforced.
std::size_t memberCount(const json::value& value) {
  std::size_t count = 0;
  if (const auto* object = value.if_object()) {
    count = object->size();
    for (const auto& member : *object) {
      count += memberCount(member.value());
    }
  } else if (const auto* array = value.if_array()) {
    for (const auto& item : *array) {
      count += memberCount(item);
    }
  }
  return count;
}

Error refused(const Handler& handler, const error_code& ec) {
  if (handler.refusal == Refusal::kTooManyValues) {
    return Error(ErrorKind::kInvalidRequest, "The message holds too many JSON values")
        .withHint("Send at most " + std::to_string(limits::kMessageValues) + " values in one message.");
  }
  if (handler.refusal == Refusal::kNotFinite) {
    return Error(ErrorKind::kParse, "A number is out of range");
  }
  if (ec == json::error::too_deep) {
    return Error(ErrorKind::kInvalidRequest, "The message is nested too deeply")
        .withHint("At most " + std::to_string(limits::kMessageDepth) + " levels of arrays and objects are read.");
  }
  return Error(ErrorKind::kParse, "Not one JSON value: " + ec.message())
      .withHint("Each message is one JSON value in UTF-8 on a line of its own.");
}

Result<json::value> parseJson(std::string_view text) {
  json::parse_options options;
  options.max_depth = limits::kMessageDepth;
  json::basic_parser<Handler> parser(options);
  parser.handler().stack.reset();
  error_code ec;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
  Handler& handler = parser.handler();
  if (ec) {
    return refused(handler, ec);
  }
  if (text.substr(used).find_first_not_of(" \t\r\n") != std::string_view::npos) {
    return Error(ErrorKind::kParse, "More than one JSON value in a message")
        .withHint("End each message with a newline; send several requests at once as a batch (an array).");
  }
  const std::size_t members = handler.members;
  json::value value = handler.stack.release();
  if (memberCount(value) != members) {
    return Error(ErrorKind::kInvalidRequest, "An object names one member twice");
  }
  return value;
}

bool isId(const json::value& value) {
  return value.is_null() || value.is_string() || value.is_int64() || value.is_uint64();
}

InvalidMessage invalid(RequestId id, std::string message, std::string hint = {}) {
  return {std::move(id), Error(ErrorKind::kInvalidRequest, std::move(message)).withHint(std::move(hint))};
}

// One with both an error and a result is no success. It is not answered either: nothing ever is answered to an answer,
// and our request must end.
Message toResponse(json::object& object, RequestId id) {
  const bool failed = object.contains("error");
  return ResponseMessage{std::move(id), failed, std::move(object[failed ? "error" : "result"])};
}

Message toMessage(json::value&& value) {
  json::object* object = value.if_object();
  if (object == nullptr) {
    return invalid(nullptr, "A message is a JSON object");
  }
  std::optional<RequestId> id;
  if (json::value* given = object->if_contains("id")) {
    if (!isId(*given)) {
      return invalid(nullptr, "An id is a string, an integer of 64 bits, or null");
    }
    id = std::move(*given);
  }
  const json::value* version = object->if_contains("jsonrpc");
  if (version == nullptr || !version->is_string() || version->get_string() != "2.0") {
    return invalid(id.value_or(nullptr), "The member jsonrpc must be \"2.0\"");
  }
  json::value* method = object->if_contains("method");
  if (method == nullptr && id && (object->contains("result") || object->contains("error"))) {
    return toResponse(*object, std::move(*id));
  }
  if (method == nullptr || !method->is_string()) {
    return invalid(id.value_or(nullptr), "The member method must be a string");
  }
  json::value params;
  if (json::value* given = object->if_contains("params")) {
    if (!given->is_structured()) {
      return invalid(id.value_or(nullptr), "The member params must be an object", "Leave it out when there are none.");
    }
    params = std::move(*given);
  }
  const json::string& name = method->get_string();
  return RequestMessage{std::move(id), std::string(name.data(), name.size()), std::move(params)};
}

std::string envelope(const RequestId& id, const char* member, json::value payload) {
  json::object message;
  message["jsonrpc"] = "2.0";
  message["id"] = id;
  message[member] = std::move(payload);
  return toText(message);
}

}  // namespace

Result<Frame> parseFrame(std::string_view text) {
  Result<json::value> value = parseJson(text);
  if (!value) {
    return std::move(value).error();
  }
  Frame frame;
  json::array* batch = value->if_array();
  if (batch == nullptr) {
    frame.messages.push_back(toMessage(std::move(*value)));
    return frame;
  }
  if (batch->empty()) {
    return Error(ErrorKind::kInvalidRequest, "A batch is empty");
  }
  if (batch->size() > limits::kBatchMembers) {
    return Error(ErrorKind::kInvalidRequest, "A batch has too many members")
        .withHint("Send at most " + std::to_string(limits::kBatchMembers) + " in one.");
  }
  frame.batch = true;
  frame.messages.reserve(batch->size());
  for (json::value& member : *batch) {
    frame.messages.push_back(toMessage(std::move(member)));
  }
  return frame;
}

std::string toText(const json::value& value) {
  // serialize() grows its buffer in small steps; reading into one that doubles is many times faster for long strings.
  json::serializer serializer;
  serializer.reset(&value);
  std::string text;
  std::size_t used = 0;
  std::size_t room = 512;
  while (!serializer.done()) {
    text.resize(used + room);
    used += serializer.read(text.data() + used, room).size();
    room = std::max(text.size(), 64UL * 1024);
  }
  text.resize(used);
  return text;
}

std::string resultText(const RequestId& id, json::value result) {
  return envelope(id, "result", std::move(result));
}

std::string errorText(const RequestId& id, const Error& error) {
  return envelope(id, "error", toWireError(error));
}

std::string notificationText(std::string_view method, const json::object& params) {
  json::object message;
  message["jsonrpc"] = "2.0";
  message["method"] = method;
  message["params"] = params;
  return toText(message);
}

std::string requestText(const RequestId& id, std::string_view method, const json::object& params) {
  json::object message;
  message["jsonrpc"] = "2.0";
  message["id"] = id;
  message["method"] = method;
  message["params"] = params;
  return toText(message);
}

}  // namespace stitchkit
