#include "rpc/request_log.h"

#include <algorithm>
#include <utility>

#include "rpc/base/limits.h"
#include "rpc/wire_error.h"

namespace stitchkit {
namespace {

// A name that the sidecar gives is a letter and a number.
constexpr std::size_t kNameBytes = 20;

std::string givenName(const boost::json::value* value) {
  if (value == nullptr || !value->is_string()) {
    return {};
  }
  const std::string_view name(value->get_string().data(), value->get_string().size());
  const bool known = name.size() >= 2 && name.size() <= kNameBytes && name.front() >= 'a' && name.front() <= 'z' &&
                     std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
  return known ? std::string(name) : std::string();
}

// A reason is a word; one that came from the host may be anything.
std::string_view word(std::string_view reason) {
  constexpr std::size_t kWordBytes = 40;
  const bool known = reason.size() <= kWordBytes && std::all_of(reason.begin(), reason.end(), [](char c) {
                       return c == '-' || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
                     });
  return known ? reason : std::string_view();
}

// A command's own end is told by the line of the command.
bool isEndOfCommand(const Error& error) {
  return error.kind == ErrorKind::kLimit && (error.reason == "deadline" || error.reason == "output-budget");
}

// What the operator can do something about, against the everyday life of a model that looks for files.
LogLevel levelOf(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kCancelled:
    case ErrorKind::kPath:
    case ErrorKind::kBadRequest:
    case ErrorKind::kNotFound:
    case ErrorKind::kConflict:
    case ErrorKind::kSpillReferenceUnknown:
      return LogLevel::kDebug;
    default:
      return isEndOfCommand(error) ? LogLevel::kDebug : LogLevel::kInfo;
  }
}

// The words of the others may repeat what the host or a model sent.
bool hasWordsOfOurs(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUnavailable:
    case ErrorKind::kBusy:
    case ErrorKind::kStopped:
    case ErrorKind::kNetworkDenied:
    case ErrorKind::kLimit:
    case ErrorKind::kInsufficient:
      return true;
    default:
      return false;
  }
}

}  // namespace

RequestLabel RequestLabel::of(std::string_view method, const boost::json::value& params) {
  RequestLabel label;
  label.method = method;
  if (const boost::json::object* object = params.if_object()) {
    for (const char* member : {"handle", "toolset", "process"}) {
      if (std::string name = givenName(object->if_contains(member)); !name.empty()) {
        label.member = member;
        label.name = std::move(name);
        break;
      }
    }
  }
  return label;
}

RequestLog::RequestLog() : lines_(limits::kLogBurst, limits::kLogLinesPerSecond) {}

void RequestLog::failed(const RequestLabel& label, const Error& error) {
  const std::string_view code = wireCode(error.kind).name;
  ++counts_.ended;
  ++counts_.errors[code];
  const LogLevel level = levelOf(error);
  if (!logEnabled(level)) {
    return;
  }
  if (const LogBudget::Verdict verdict = lines_.take(); verdict.write) {
    const std::optional<std::uint64_t> suppressed =
        verdict.suppressed != 0 ? std::optional(verdict.suppressed) : std::nullopt;
    logEvent(level, "refusal",
             {{"method", label.method},
              {label.member, label.name},
              {"code", code},
              {"reason", word(error.reason)},
              {"message", hasWordsOfOurs(error.kind) ? std::string_view(error.message) : std::string_view()},
              {"durationMs", millisecondsSince(label.began)},
              {"suppressed", suppressed}});
  }
}

}  // namespace stitchkit
