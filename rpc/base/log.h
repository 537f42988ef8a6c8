// The log: lines on stderr for the operator. Never on stdout, never a secret, never blocking.
#pragma once

#include <cstdint>
#include <string_view>

namespace stitchkit {

enum class LogLevel : std::uint8_t { kError, kWarning, kInfo, kDebug };

/// Lines above this level are dropped. Set once at start, before threads.
void setLogLevel(LogLevel level) noexcept;

/// Writes one line. Thread-safe. When nobody reads stderr the line is dropped and counted rather than waited for,
/// so that a host that forgot to read stderr does not stop the protocol.
void logLine(LogLevel level, std::string_view text) noexcept;

}  // namespace stitchkit
