// One guest: from a command and a profile to an outcome.
//
// Threading: everything here happens on one loop thread that runs the io_context and lives as long as any guest does
// (a parent-death signal follows the thread that forks). Callbacks are called on it, never from inside start(). The
// process must ignore SIGPIPE. The io_context must outlive every reference to a guest.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "backend/launch/command_payload.h"
#include "backend/launch/launch_profile.h"
#include "rpc/base/error.h"

namespace boost::asio {
class io_context;
}

namespace stitchkit {

class SandboxProcess;

enum class OutputChannel : std::uint8_t { kStdout, kStderr };

/// What ended a guest. Of several the first counts.
enum class EndCause : std::uint8_t {
  kExited,        ///< by itself
  kDeadline,      ///< Command::timeout
  kOutputBudget,  ///< it wrote more than Command::maxOutputBytes
  kCancelled,     ///< kill(): the request was cancelled
  kStopped,       ///< kill(): its handle or process was stopped
};

struct GuestOutcome {
  EndCause cause = EndCause::kExited;
  int exitCode = 0;            ///< the program's; 128+n when signal n ended it; 137 whenever it was killed by us
  std::string standardOutput;  ///< with a streaming callback both are empty
  std::string standardError;
  /// The session's limit that stood in the way meanwhile, for a program that did not end well: "memory" (a process was
  /// killed for it) or "processes" (forks failed); "" for none.
  std::string resource;
};

struct GuestOptions {
  /// Started ahead of the command with the same profile; nullptr: one is started now.
  std::shared_ptr<SandboxProcess> sandbox;
  /// Called once, before the completion: when the program is known to run or to be unable to (exit code 126 or 127),
  /// when it was killed before either, or with the error that the completion will get. May be empty.
  std::function<void(Result<void>)> onStarted;
  /// When given, output goes here as it comes, in order for each channel, within maxOutputBytes, instead of into the
  /// outcome; never after the completion. It may call pauseOutput() and kill().
  std::function<void(OutputChannel, std::string_view)> onOutput;
};

class Guest {
 public:
  using Completion = std::function<void(Result<GuestOutcome>)>;

  virtual ~Guest() = default;

  /// Starts a guest. `completion` is called once, when nothing of the guest is left on the machine. The guest keeps
  /// itself alive until then; `profile` need not outlive the call. `standardInput` empty: /dev/null.
  /// Errors: kUnavailable (no sandbox, or no guest in it: never a command's result), kLimit (arguments and environment
  /// too large for the kernel), kPath with `details.errno` (working directory).
  static std::shared_ptr<Guest> start(boost::asio::io_context& io, const PreparedProfile& profile, Command command,
                                      std::string standardInput, GuestOptions options, Completion completion);

  /// Ends the guest with all its descendants; the completion follows. Without effect on the result once the guest has
  /// ended by itself or for another cause.
  virtual void kill(EndCause cause) = 0;

  /// Back-pressure: between the two no output is read, while deadline and kill go on. A guest that ends while paused
  /// delivers what lies in its pipes (at most their capacity) and completes.
  virtual void pauseOutput() = 0;
  virtual void resumeOutput() = 0;
};

}  // namespace stitchkit
