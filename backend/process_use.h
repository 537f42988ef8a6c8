// What the sidecar's own process uses of the machine.
#pragma once

#include <cstdint>

namespace stitchkit {

/// 0 where the kernel does not say.
struct ProcessUse {
  std::uint64_t residentBytes = 0;
  std::uint64_t peakBytes = 0;  ///< the most that was ever resident
  std::uint64_t threads = 0;
  std::uint64_t openFiles = 0;
  std::uint64_t openFilesLimit = 0;
};

/// Reads /proc/self; takes some tens of microseconds.
ProcessUse processUse();

}  // namespace stitchkit
