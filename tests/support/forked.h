// Runs a piece of a test in a child process: as another user, or where it changes the process for good.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

namespace stitchkit::testing {

/// What a child said and how it ended.
struct ForkedOutcome {
  std::string text;   ///< what the function returned; what it threw, after "threw: "
  int exitCode = -1;  ///< 0; -1 after a signal
};

/// Forks, becomes `user` when given (all ids, no groups), calls `work` and waits for it. Only while the test has one
/// thread. The child leaves by _exit: no destructors, no leak check.
ForkedOutcome runForked(const std::function<std::string()>& work, std::optional<uid_t> user = std::nullopt);

/// Becomes `user` in every respect (groups, gid, uid, capabilities go with the uid). Throws when it fails.
void becomeUser(uid_t user);

}  // namespace stitchkit::testing
