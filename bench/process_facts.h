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
};

/// Needs the process's own user, or root.
ProcessFacts factsOf(pid_t pid);

}  // namespace stitchkit::bench
