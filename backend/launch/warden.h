// A small process that outlives a killed sidecar by an instant, to end the guests that are left.
//
// A sandbox's init dies with bwrap and bwrap with the sidecar by parent-death signals. A guest may run with the rights
// of its init, though, and so can make it forget that signal (ptrace). The warden is outside of every sandbox, where no
// guest reaches it, holds a pidfd of each init, and kills them all when the sidecar's end of its socket closes, however
// that comes about.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

namespace stitchkit {

/// Loop thread only, but for start().
class Warden {
 public:
  /// Forks it, as the user that guests are started by. `cgroups` are directories of control groups that it removes when
  /// the sidecar is gone and the guests with it (backend/cgroups). Errors: kUnavailable.
  static Result<Warden> start(std::vector<std::string> cgroups = {});

  Warden(Warden&& other) noexcept;
  Warden& operator=(Warden&&) = delete;
  Warden(const Warden&) = delete;
  Warden& operator=(const Warden&) = delete;
  /// Ends it and waits until it is gone. No guest may be left that should go on.
  ~Warden();

  /// Puts a namespace's init under watch until it has ended. To be called before anything of the guest runs. A warden
  /// that was killed is replaced. Errors: kUnavailable; then the guest must not run.
  Result<void> watch(int initPidfd);

  /// Which of the wardens that came one after another has been watching since watch().
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }
  /// Whether that one still lives. What waits for a command longer than its warden lived has to be thrown away.
  [[nodiscard]] bool lives(std::uint64_t generation) const noexcept;

 private:
  int send(int initPidfd);

  Warden(UniqueFd socket, pid_t pid, std::vector<std::string> cgroups) noexcept
      : socket_(std::move(socket)), pid_(pid), cgroups_(std::move(cgroups)) {}

  UniqueFd socket_;
  pid_t pid_ = -1;
  std::vector<std::string> cgroups_;
  std::uint64_t generation_ = 0;
};

}  // namespace stitchkit
