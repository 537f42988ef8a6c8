// The SHA-256 of files, remembered while they do not change.
#pragma once

#include "codingtools/contained_directory.h"
#include "rpc/base/error.h"

#include <sys/stat.h>

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

namespace stitchkit {

/// Thread-safe.
class FileDigests {
 public:
  /// Up to how many bytes a file is digested: above, an answer would take too long to wait for.
  static constexpr std::uint64_t kMaxBytes = 64UL * 1024 * 1024;

  /// 64 hex digits of the whole file, whatever the descriptor's offset; nothing for one over kMaxBytes. The digest of a
  /// larger one is kept, and given again while the file's identity, size and times of change are the same. kCancelled.
  Result<std::optional<std::string>> of(int fd, const std::stop_token& stop);

 private:
  struct Known {
    FileIdentity file;
    off_t size = 0;
    timespec modified{};
    timespec changed{};
    std::string digest;
    [[nodiscard]] bool describes(const struct stat& status) const;
  };

  std::mutex mutex_;
  std::deque<Known> known_;  ///< guarded by mutex_; the latest last
};

}  // namespace stitchkit
