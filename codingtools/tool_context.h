// What one call of a coding tool works with.
#pragma once

#include "codingtools/contained_directory.h"
#include "codingtools/file_digests.h"
#include "codingtools/file_locks.h"
#include "codingtools/staging_directory.h"
#include "codingtools/tool_files.h"
#include "codingtools/tool_guard.h"

#include <cstddef>
#include <cstdint>
#include <stop_token>

namespace stitchkit {

/// PROTOCOL.md, section 7; `coding.create` may set others.
struct ToolLimits {
  std::size_t maxPathBytes = 4096;
  std::size_t maxReadBytes = 262144;
  std::size_t maxWriteBytes = 262144;
  std::size_t maxShellArguments = 128;
  std::size_t maxShellArgumentBytes = 65536;
  std::size_t maxShellOutputBytes = 262144;
  std::size_t maxArtifactBytes = 4194304;
  std::size_t maxListEntries = 500;
  std::size_t maxSearchResults = 100;
  std::size_t maxSearchFiles = 10000;
  std::size_t maxSearchDepth = 32;
  std::int64_t shellTimeoutMs = 30000;
  std::int64_t shellTerminationGraceMs = 250;
};

/// References live as long as the call. A tool runs on a thread of its own, where it may block on the disk and on the
/// host; it looks at `stop` between steps and then fails with kCancelled.
struct ToolContext {
  const ToolFiles& files;
  const ToolGuard& guard;
  FileLocks& locks;
  FileDigests& digests;
  const ToolLimits& limits;
  std::stop_token stop;
};

}  // namespace stitchkit
