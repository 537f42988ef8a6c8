// From how a launch failed to what the caller is told.
#pragma once

#include <string>

#include "backend/launch/launch_helper/launch_protocol.h"
#include "backend/launch/sandbox_process.h"
#include "rpc/base/error.h"

namespace stitchkit {

/// A report of the helper that is no ordinary result (exitCode 0, error not 0): kLimit, kPath or kUnavailable.
Error launchReportError(const LaunchReport& report);

/// The limit of the session that stood in the way: "memory" or "processes"; "" for none.
std::string exhaustedResource(const SandboxEnd& end);

/// Somebody else has killed what was ready for a guest, or a part of it: kUnavailable, "sandbox-killed".
Error killedFromOutside();

/// The sandbox ended without a result of its guest: kUnavailable with the cause as reason (backend/diagnosis), bwrap's
/// words private; kLimit with `details.resource` when it was for want of the session's memory.
Error setUpError(const SandboxEnd& end);

}  // namespace stitchkit
