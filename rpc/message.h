// One frame's text to messages (JSON-RPC 2.0, PROTOCOL.md section 1), and messages to text.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rpc/base/error.h"

namespace stitchkit {

/// A request's id: null, a string, or an integer of 64 bits. Absent for notifications.
using RequestId = boost::json::value;

/// A request, or a notification when `id` is absent.
struct RequestMessage {
  std::optional<RequestId> id;
  std::string method;
  boost::json::value params;  ///< an object, an array, or null when absent
};

/// The answer of the host to a request of ours.
struct ResponseMessage {
  RequestId id;
  bool failed = false;
  boost::json::value payload;  ///< the result, or the error object
};

/// Not a request: to be answered with the error under `id`.
struct InvalidMessage {
  RequestId id;
  Error error;
};

using Message = std::variant<RequestMessage, ResponseMessage, InvalidMessage>;

/// What one frame holds.
struct Frame {
  bool batch = false;
  std::vector<Message> messages;  ///< exactly one unless `batch`
};

/// Reads one frame. Refused as a whole (PARSE_ERROR or INVALID_REQUEST, to be answered with id null): text that is no
/// JSON value, invalid UTF-8, lone surrogates, numbers that are not finite, more than limits::kMessageDepth levels,
/// more than limits::kMessageValues values, one member name twice in an object, an empty or too long batch.
Result<Frame> parseFrame(std::string_view text);

/// Compact JSON text. The value must hold valid UTF-8.
std::string toText(const boost::json::value& value);

std::string resultText(const RequestId& id, boost::json::value result);
std::string errorText(const RequestId& id, const Error& error);
std::string notificationText(std::string_view method, const boost::json::object& params);
std::string requestText(const RequestId& id, std::string_view method, const boost::json::object& params);

}  // namespace stitchkit
