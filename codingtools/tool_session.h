// What the coding tools need of a live session: the port behind which stand handles, guests and leases.
#pragma once

#include "codingtools/artifact_store.h"
#include "codingtools/contained_directory.h"
#include "codingtools/staging_directory.h"
#include "rpc/base/error.h"
#include "rpc/cancellation.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace stitchkit {

/// A program to run as a guest.
struct ToolCommand {
  std::string executable;  ///< an absolute path, as the guest sees it
  std::vector<std::string> arguments;
  std::string workingDirectory;  ///< canonical
  std::vector<std::pair<std::string, std::string>> environment;
  std::chrono::milliseconds timeout{0};
  std::uint64_t maxOutputBytes = 0;  ///< both channels together; one more ends the command
};

struct ToolCommandEnd {
  enum class Outcome : std::uint8_t { kExited, kTimeout, kOutputLimit, kCancelled } outcome = Outcome::kExited;
  int exitCode = 0;  ///< of one that exited; 128+n when signal n ended it
  std::string standardOutput;
  std::string standardError;
  std::string resource = {};  ///< "memory" or "processes": the session's limit that stood in its way; "" for none
};

/// What is enforced (PROTOCOL.md, section 4).
struct ToolGrade {
  std::string grade;
  std::vector<std::string> restrictions;
};

/// One call of a tool, at work in a session. A stop of the session ends it and waits until it is destroyed, on the loop
/// thread. What it gives lives as long as it does, for any thread.
class ToolWork {
 public:
  virtual ~ToolWork() = default;
  [[nodiscard]] virtual const ContainedDirectory& workspace() const = 0;
  [[nodiscard]] virtual StagingDirectory& staging() const = 0;
  [[nodiscard]] virtual ArtifactStore& artifacts() const = 0;
  /// Requested when the call is cancelled or the session stops.
  [[nodiscard]] virtual std::stop_token ended() const = 0;
  /// Requested when the session stops.
  [[nodiscard]] virtual std::stop_token stopped() const = 0;
};

/// Loop-thread only; callbacks are called on the loop. Once the session was stopped every call fails with kUnavailable
/// and `details.reason` SANDBOX_STOPPED (toolSessionStopped).
class ToolSession {
 public:
  using CommandDone = std::function<void(Result<ToolCommandEnd>)>;

  virtual ~ToolSession() = default;
  virtual Result<std::shared_ptr<ToolWork>> begin(const std::shared_ptr<Cancellation>& cancellation) = 0;
  [[nodiscard]] virtual ToolGrade grade() const = 0;
  /// It will never begin() again.
  [[nodiscard]] virtual bool stopped() const = 0;
  /// Runs a command for `work`, which is kept until then; kBusy at the session's limit of live commands. A cancellation
  /// of the work ends the command.
  virtual void run(const std::shared_ptr<ToolWork>& work, ToolCommand command, CommandDone done) = 0;
};

/// kUnavailable with `details.reason` SANDBOX_STOPPED.
Error toolSessionStopped();

}  // namespace stitchkit
