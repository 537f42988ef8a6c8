// The ceilings of a toolset (PROTOCOL.md, section 7).
#pragma once

#include <cstddef>
#include <cstdint>

namespace stitchkit {

/// The defaults are those of the protocol; `coding.create` may set others.
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
};

}  // namespace stitchkit
