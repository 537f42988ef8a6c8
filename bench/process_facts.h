// What a process holds, read from /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace stitchkit::bench {

struct ProcessFacts {
  int descriptors = 0;
  int threads = 0;
  int zombies = 0;  ///< children that ended and were not reaped
  std::int64_t residentBytes = 0;
  std::int64_t peakBytes = 0;  ///< the most that was resident, since the start or forgetPeak()
};

/// Needs the process's own user, or root.
ProcessFacts factsOf(pid_t pid);
/// Where the kernel lets this user; else the peak of the start goes on counting.
void forgetPeak(pid_t pid);

}  // namespace stitchkit::bench
