#include "gateway/gateway_watch.h"

#include <optional>
#include <utility>

#include "gateway/policy.h"
#include "rpc/base/limits.h"

namespace stitchkit {
namespace {

// Of what a guest can make as long as it likes.
constexpr std::size_t kMethodBytes = 32;
constexpr std::size_t kHostBytes = 256;

bool isRefusal(GatewayOutcome outcome) {
  return outcome == GatewayOutcome::kDenied || outcome == GatewayOutcome::kMalformed ||
         outcome == GatewayOutcome::kBusy;
}

}  // namespace

std::string_view nameOf(GatewayOutcome outcome) {
  switch (outcome) {
    case GatewayOutcome::kAnswered:
      return "answered";
    case GatewayOutcome::kDenied:
      return "denied";
    case GatewayOutcome::kMalformed:
      return "malformed";
    case GatewayOutcome::kBusy:
      return "busy";
    case GatewayOutcome::kUpstreamFailed:
      return "upstream-failed";
    case GatewayOutcome::kGuestGone:
      return "guest-gone";
    case GatewayOutcome::kEnded:
      return "ended";
  }
  return "";
}

GatewayWatch::GatewayWatch(std::string handle, std::string session)
    : handle_(std::move(handle)),
      session_(std::move(session)),
      served_(limits::kLogGatewayBurst, limits::kLogGatewayLinesPerSecond),
      refused_(limits::kLogBurst, limits::kLogLinesPerSecond) {}

std::uint64_t GatewayWatch::total() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& count : counts_) {
    sum += count.load(std::memory_order_relaxed);
  }
  return sum;
}

void GatewayWatch::ended(const GatewayRecord& record) {
  counts_[static_cast<std::size_t>(record.outcome)].fetch_add(1, std::memory_order_relaxed);
  if (logEnabled(LogLevel::kInfo)) {
    write(record);
  }
}

// Neither path nor query: both may hold secrets of the guest's.
void GatewayWatch::write(const GatewayRecord& record) {
  const LogBudget::Verdict verdict = (isRefusal(record.outcome) ? refused_ : served_).take();
  if (!verdict.write) {
    return;
  }
  const std::string origin = record.rule != nullptr ? record.rule->origin.text() : std::string();
  const auto told = [](bool when, std::uint64_t number) {
    return when ? std::optional<std::uint64_t>(number) : std::nullopt;
  };
  logEvent(LogLevel::kInfo, "gateway-request",
           {{"handle", handle_},
            {"session", session_},
            {"method", record.method.substr(0, kMethodBytes)},
            {"origin", origin},
            {"host", record.rule != nullptr ? std::string_view() : record.host.substr(0, kHostBytes)},
            {"outcome", nameOf(record.outcome)},
            {"status", told(record.status != 0, record.status)},
            {"requestBytes", record.requestBytes},
            {"responseBytes", record.responseBytes},
            {"durationMs", millisecondsSince(record.began)},
            {"suppressed", told(verdict.suppressed != 0, verdict.suppressed)}});
}

}  // namespace stitchkit
