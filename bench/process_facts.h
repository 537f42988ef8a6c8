// What a process holds, read from /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

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

/// Live processes whose ancestor it is, without itself.
std::vector<pid_t> descendantsOf(pid_t pid);
/// /proc/PID/comm.
std::string nameOf(pid_t pid);
/// Of the memory that it shares, its share (PSS).
std::int64_t proportionalBytes(pid_t pid);
/// How often its threads have gone to sleep by themselves: each time something wakes one, there is one more.
std::int64_t sleepsOf(pid_t pid);

}  // namespace stitchkit::bench
