#include "backend/command_watch.h"

#include "rpc/base/log.h"
#include "rpc/wire_error.h"

namespace stitchkit {
namespace {

// Of a program's path in a line.
constexpr std::size_t kExecutableBytes = 256;
// Behind those of EndCause.
constexpr std::size_t kFailed = kCommandOutcomes - 1;

std::string_view nameOf(CommandKind kind) {
  switch (kind) {
    case CommandKind::kRun:
      return "run";
    case CommandKind::kSpawn:
      return "spawn";
    case CommandKind::kTool:
      return "tool";
  }
  return "";
}

// What launch_failure.h says of a launch that its session's memory did not suffice for.
bool isOutOfMemory(const Error& error) {
  return error.kind == ErrorKind::kLimit && error.reason == "memory";
}

}  // namespace

std::string_view nameOf(CommandLaunch launch) {
  switch (launch) {
    case CommandLaunch::kWarm:
      return "warm";
    case CommandLaunch::kWarming:
      return "warming";
    case CommandLaunch::kCold:
      return "cold";
  }
  return "";
}

std::string_view nameOfOutcome(std::size_t index) {
  if (index == kFailed) {
    return "failed";
  }
  switch (static_cast<EndCause>(index)) {
    case EndCause::kExited:
      return "exited";
    case EndCause::kDeadline:
      return "deadline";
    case EndCause::kOutputBudget:
      return "output-budget";
    case EndCause::kCancelled:
      return "cancelled";
    case EndCause::kStopped:
      return "stopped";
  }
  return "";
}

CommandWatch::CommandWatch(CommandCounts& counts, CommandKind kind, CommandLaunch launch, const Command& command)
    : counts_(&counts), kind_(kind), launch_(launch), executable_(command.executable.substr(0, kExecutableBytes)) {
  counts_->mostLive.see(++counts_->live);
  ++counts_->started;
  ++counts_->launches[static_cast<std::size_t>(launch)];
}

void CommandWatch::ended(const Result<GuestOutcome>& outcome) {
  milliseconds_ = millisecondsSince(began_);
  outcome_ = outcome ? static_cast<std::size_t>(outcome->cause) : kFailed;
  if (!outcome) {
    error_ = outcome.error().kind;
    resource_ = isOutOfMemory(outcome.error()) ? "memory" : "";
  } else {
    resource_ = outcome->resource;
    if (outcome->cause == EndCause::kExited) {
      exitCode_ = outcome->exitCode;
    }
  }
  counts_->shortOfMemory += resource_ == "memory" ? 1 : 0;
  counts_->shortOfProcesses += resource_ == "processes" ? 1 : 0;
  --counts_->live;
  ++counts_->ended[outcome_];
}

void CommandWatch::writeLine(std::string_view handle, std::string_view session) const {
  logEvent(LogLevel::kInfo, "command",
           {{"handle", handle},
            {"session", session},
            {"kind", nameOf(kind_)},
            {"executable", executable_},
            {"launch", nameOf(launch_)},
            {"outcome", nameOfOutcome(outcome_)},
            {"code", error_ ? wireCode(*error_).name : std::string_view()},
            {"exitCode", exitCode_},
            {"resource", resource_},
            {"durationMs", milliseconds_}});
}

}  // namespace stitchkit
