#include "rpc/wire_error.h"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include <atomic>
#include <random>

#include "rpc/base/limits.h"
#include "rpc/base/log.h"
#include "rpc/base/utf8.h"

namespace stitchkit {
namespace {

namespace json = boost::json;

std::string nextIncident() {
  static const std::uint32_t start = std::random_device{}();
  static std::atomic<std::uint32_t> counter{0};
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(17, '-');
  std::uint32_t high = start;
  std::uint32_t low = ++counter;
  for (std::size_t i = 0; i < 8; ++i, high >>= 4, low >>= 4) {
    text[7 - i] = kDigits[high & 15U];
    text[16 - i] = kDigits[low & 15U];
  }
  return text;
}

std::string shortText(std::string_view text) {
  return toUtf8(excerpt(text, limits::kErrorTextCharacters));
}

json::value toJson(const ErrorDetail& detail) {
  if (const auto* number = std::get_if<std::int64_t>(&detail)) {
    return *number;
  }
  if (const auto* flag = std::get_if<bool>(&detail)) {
    return *flag;
  }
  if (const auto* text = std::get_if<std::string>(&detail)) {
    return json::value(toUtf8(*text));
  }
  if (const auto* names = std::get_if<std::vector<std::string>>(&detail)) {
    json::array list;
    for (const std::string& name : *names) {
      list.push_back(json::value(toUtf8(name)));
    }
    return list;
  }
  json::array issues;
  for (const ValidationIssue& issue : std::get<std::vector<ValidationIssue>>(detail)) {
    issues.push_back({{"path", shortText(issue.path)}, {"message", shortText(issue.message)}});
  }
  return issues;
}

}  // namespace

WireCode wireCode(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kParse:
      return {-32700, "PARSE_ERROR"};
    case ErrorKind::kInvalidRequest:
      return {-32600, "INVALID_REQUEST"};
    case ErrorKind::kMethodNotFound:
      return {-32601, "METHOD_NOT_FOUND"};
    case ErrorKind::kValidation:
      return {-32602, "VALIDATION_ERROR"};
    case ErrorKind::kInternal:
      return {-32603, "INTERNAL_SERVER_ERROR"};
    case ErrorKind::kCancelled:
      return {-32800, "CANCELLED"};
    case ErrorKind::kUnavailable:
      return {-32001, "SANDBOX_UNAVAILABLE"};
    case ErrorKind::kBusy:
      return {-32002, "SANDBOX_BUSY"};
    case ErrorKind::kStopped:
      return {-32003, "SANDBOX_STOPPED"};
    case ErrorKind::kStateMismatch:
      return {-32004, "SANDBOX_STATE_MISMATCH"};
    case ErrorKind::kNetworkDenied:
      return {-32005, "SANDBOX_NETWORK_DENIED"};
    case ErrorKind::kLimit:
      return {-32006, "SANDBOX_LIMIT"};
    case ErrorKind::kPath:
      return {-32007, "SANDBOX_PATH"};
    case ErrorKind::kBadRequest:
      return {-32010, "BAD_REQUEST"};
    case ErrorKind::kForbidden:
      return {-32011, "FORBIDDEN"};
    case ErrorKind::kNotFound:
      return {-32012, "NOT_FOUND"};
    case ErrorKind::kConflict:
      return {-32013, "CONFLICT"};
    case ErrorKind::kInsufficient:
      return {-32014, "SANDBOX_INSUFFICIENT"};
    case ErrorKind::kSpillReferenceUnknown:
      return {-32015, "SPILL_REFERENCE_UNKNOWN"};
  }
  return {-32603, "INTERNAL_SERVER_ERROR"};
}

json::object toWireError(const Error& error) {
  const WireCode code = wireCode(error.kind);
  json::object data;
  data["code"] = code.name;
  if (!error.reason.empty()) {
    data["reason"] = error.reason;
  }
  if (!error.details.empty()) {
    json::object& details = data["details"].emplace_object();
    for (const auto& [name, value] : error.details) {
      details[name] = toJson(value);
    }
  }
  if (!error.hint.empty()) {
    data["hint"] = toUtf8(error.hint);
  }
  if (!error.privateDetail.empty()) {
    const std::string incident = nextIncident();
    logEvent(LogLevel::kWarning, "incident",
             {{"incident", incident},
              {"code", code.name},
              {"message", shortText(error.message) + ": " + error.privateDetail}});
    data["incident"] = incident;
  }
  json::object wire;
  wire["code"] = code.number;
  wire["message"] = shortText(error.message);
  wire["data"] = std::move(data);
  return wire;
}

}  // namespace stitchkit
