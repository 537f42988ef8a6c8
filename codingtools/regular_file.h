// Whole regular files through open descriptors. A descriptor may come from a guest, so nothing about it is believed.
#pragma once

#include "rpc/base/error.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stitchkit {

/// The whole content, from the beginning, whatever the descriptor's offset. Not a regular file (a FIFO, a socket, a
/// device, a file of procfs, which acts on whoever reads it): kPath ENXIO; a directory: kPath EISDIR. More than
/// `maxBytes`: kLimit with details `bytes` (the size that was seen) and `limit`; memory stays within `maxBytes` even
/// when the file claims or grows to more. Never blocks on a reader or writer. Thread-safe.
Result<std::string> readRegular(int fd, std::size_t maxBytes);

/// The same without waiting for the disk: nothing when that would be needed, and nothing instead of any error.
std::optional<std::string> readRegularCached(int fd, std::size_t maxBytes);

/// Makes `bytes` the whole content, in place: the file stays the same inode (links, mode and owner stay), and readers
/// may see it half written. Refuses what readRegular refuses.
Result<void> overwriteRegular(int fd, std::string_view bytes);

/// Writes all of `bytes` at the descriptor's offset. 0 or errno.
int writeAll(int fd, std::string_view bytes);

}  // namespace stitchkit
