#include "tests/support/host_checks.h"

#include "tests/support/scratch.h"
#include "tests/support/spawn.h"

#include <unistd.h>

#include <exception>
#include <optional>

namespace stitchkit::testing {

std::string isolationProblem() {
  const std::optional<uid_t> user = ::geteuid() == 0 ? std::optional<uid_t>(kOrdinaryUid) : std::nullopt;
  try {
    const auto result = runProgram(
        {"/usr/bin/bwrap", "--unshare-all", "--unshare-user", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib",
         "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "/usr/bin/true"},
        user);
    if (result.status.code == 0) {
      return "";
    }
    return "bwrap ended with " + std::to_string(result.status.code) + ": " + result.output +
           "\nIs user.max_user_namespaces 0, kernel.unprivileged_userns_clone 0, or does a container's seccomp filter "
           "or AppArmor forbid user namespaces?";
  } catch (const std::exception& failure) {
    return std::string(failure.what()) + "\nInstall bubblewrap.";
  }
}

}  // namespace stitchkit::testing
