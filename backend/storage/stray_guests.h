// Guests that outlived their sidecar. They should not exist (they die with their parent), but a session is handed on
// only when that has been looked at.
#pragma once

#include "rpc/base/error.h"

#include <chrono>
#include <string_view>

namespace stitchkit {

inline constexpr std::chrono::milliseconds kStrayGuestDeadline{5000};

/// Kills every process that has the workspace of this session (`.../sessions/<id>/workspace`) mounted as /workspace in
/// a mount namespace and a PID namespace of its own, and waits until all are gone. Processes that share our namespaces
/// are never touched, whatever is mounted there. kBusy when some are left at the deadline. Blocks; thread-safe. For the
/// owner of the session's lease only, before it starts guests of its own.
Result<void> endStrayGuests(std::string_view sessionId, std::chrono::milliseconds deadline = kStrayGuestDeadline);

}  // namespace stitchkit
