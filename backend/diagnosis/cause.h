// Why isolation does not work here: the known causes, each with a stable name and with words for whoever can mend it.
#pragma once

#include "rpc/base/error.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stitchkit {

enum class Cause : std::uint8_t {
  // Bubblewrap itself
  kBubblewrapMissing,
  kBubblewrapNotExecutable,
  kBubblewrapSetuid,
  kBubblewrapCapabilities,
  kBubblewrapTooOld,
  kBubblewrapUnknown,
  // Namespaces
  kUserNamespacesDisabled,
  kUserNamespacesLimited,
  kAppArmorRestrictsUserNamespaces,
  kContainerSeccomp,
  kSeccompFilter,
  kUserNamespacesRefused,
  kMountsRefused,
  kProcMasked,
  // The kernel
  kKernelTooOld,
  kSeccompUnavailable,
  // The state directory
  kStateDirectoryPath,
  kStateDirectoryNotSearchable,
  kStateDirectoryNotWritable,
  kStateDirectoryFull,
  kStateDirectoryNoexec,
  kStateDirectoryFileSystem,
  kStateDirectoryChanged,
  // What the sidecar was started with
  kOpenFilesLimited,
  kProcessesLimited,
  kStaysRoot,
  kNoCgroup,
  // The rest
  kSetUpTimeout,
  kSetUpFailed,
};
inline constexpr std::size_t kCauses = static_cast<std::size_t>(Cause::kSetUpFailed) + 1;

/// All of it is public: no host path, no errno text.
struct CauseText {
  const char* name;     ///< `error.data.reason`, and `cause` of the doctor: stable
  const char* message;  ///< what is wrong; begins in lower case, unless with a name, and ends without a full stop
  const char* hint;     ///< what to do: whole sentences
};

const CauseText& textOf(Cause cause);

/// SANDBOX_UNAVAILABLE with the cause as reason, its hint, and a message of `what` and the cause's.
Error unavailableBecause(std::string_view what, Cause cause);

}  // namespace stitchkit
