// A launcher for Boost.Process v2 (its launcher concept): the parent's memory is not copied, an exec failure leaves no
// child, the child gets what is named here and nothing else, and it is in its control groups before it executes
// anything, which posix_spawn cannot do.
#pragma once

#include <boost/process/v2/process.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/cgroups/session_cgroup.h"

namespace stitchkit {

/// Whom nobody waits for makes way for whom somebody does: SCHED_BATCH, which, unlike a nice value, a process may give
/// up again without privilege. When it waits for a command, the launch does.
enum class LaunchPriority : std::uint8_t { kNormal, kBackground };

/// Starts a program in a session of its own, with an empty environment, no signal blocked, every disposition the
/// default, and exactly the descriptors of `descriptors`. Call it on a thread that lives as long as the child is to:
/// a parent-death signal follows the thread that forks. That thread waits until the program is there.
struct GuestLauncher {
  std::string name;              ///< argv[0]: what /proc shows of the child, so no host path
  std::vector<int> descriptors;  ///< descriptors[n] becomes descriptor n; all are valid
  LaunchPriority priority = LaunchPriority::kNormal;
  CgroupJoin cgroup = {};  ///< lives as long as the call

  /// `arguments` come after argv[0]. On failure `error` is set (system category) and the process is empty.
  boost::process::v2::process operator()(boost::asio::any_io_executor executor, boost::system::error_code& error,
                                         const boost::filesystem::path& executable,
                                         const std::vector<std::string>& arguments) const;
};

}  // namespace stitchkit
