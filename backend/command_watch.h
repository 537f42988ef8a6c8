// The commands of all handles, for who watches the sidecar: counts, and a line of the log a command.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backend/launch/guest.h"
#include "rpc/queue_state.h"

namespace stitchkit {

/// Who asked for a command.
enum class CommandKind : std::uint8_t { kRun, kSpawn, kTool };

/// What a command found when it began.
enum class CommandLaunch : std::uint8_t {
  kWarm,     ///< a sandbox that waited for it
  kWarming,  ///< one that was being set up
  kCold,     ///< none: it started its own
};
inline constexpr std::size_t kCommandLaunches = 3;
std::string_view nameOf(CommandLaunch launch);

/// How a command ended: EndCause, or an error.
inline constexpr std::size_t kCommandOutcomes = 6;
/// As it stands in lines and in `backend.stats`: `output-budget`. @param index below kCommandOutcomes.
std::string_view nameOfOutcome(std::size_t index);

struct CommandCounts {
  std::uint64_t live = 0;
  HighWater mostLive;
  std::uint64_t started = 0;
  std::array<std::uint64_t, kCommandOutcomes> ended{};
  std::array<std::uint64_t, kCommandLaunches> launches{};
  std::uint64_t shortOfMemory = 0;  ///< a limit of their session stood in their way: GuestOutcome::resource
  std::uint64_t shortOfProcesses = 0;
};

/// One command. Loop thread only, as its counts, which outlive it.
class CommandWatch {
 public:
  /// The command begins. Of `command` only the program's path is kept: arguments, environment and input may hold
  /// secrets.
  CommandWatch(CommandCounts& counts, CommandKind kind, CommandLaunch launch, const Command& command);

  /// Nothing of it is left.
  void ended(const Result<GuestOutcome>& outcome);
  /// Its line, once it has ended.
  void writeLine(std::string_view handle, std::string_view session) const;

 private:
  CommandCounts* counts_;
  CommandKind kind_;
  CommandLaunch launch_;
  std::string executable_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  double milliseconds_ = 0;
  std::size_t outcome_ = 0;
  std::optional<int> exitCode_;     // where the program has one
  std::optional<ErrorKind> error_;  // where it is none
  std::string resource_;
};

}  // namespace stitchkit
