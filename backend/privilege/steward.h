// A child that stays root for the one thing that may still need it: `initialize` naming a state directory after the
// sidecar has given root up.
#pragma once

#include "backend/privilege/user.h"
#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

#include <sys/types.h>

#include <string>

namespace stitchkit {

/// The sidecar's end of the steward. It must be dismissed before the first guest is started, so that no privileged
/// process ever lives beside one.
///
/// What the child is: a fork with no descriptor but its socket (and /dev/null for the three standard streams), no
/// environment, no supplementary groups, a session of its own. It answers at most one request and then exits. It exits
/// at once when the sidecar's end closes, however that comes about (a parent-death signal would not reach it: an
/// unprivileged parent may not signal root).
///
/// Not thread-safe: one call at a time.
class Steward {
 public:
  /// No steward: not started by root, or staying root. Hand-overs succeed without doing anything.
  Steward() noexcept = default;
  Steward(Steward&& other) noexcept;
  Steward& operator=(Steward&& other) noexcept;
  Steward(const Steward&) = delete;
  Steward& operator=(const Steward&) = delete;
  ~Steward() { dismiss(); }

  /// Forks it. Called as root, before any thread exists. Errors: kInternal.
  static Result<Steward> start(const TargetUser& user);

  /// Has the steward hand `path` over to the user (backend/privilege/hand_over.h says what that does and which errors
  /// there are). A relative path is meant from the working directory. Blocks until it is done; only the first call is
  /// served, later ones get kInternal.
  Result<void> handOver(const std::string& path);

  /// Ends it and waits until it is gone. Idempotent.
  void dismiss() noexcept;

  /// The child, -1 when there is none (any more).
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

 private:
  Steward(UniqueFd socket, pid_t pid) noexcept : socket_(std::move(socket)), pid_(pid) {}

  UniqueFd socket_;
  pid_t pid_ = -1;
};

}  // namespace stitchkit
