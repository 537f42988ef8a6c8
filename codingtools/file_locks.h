// One lock a file, by what the file is and not by how it is spelled.
#pragma once

#include "codingtools/contained_directory.h"

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stop_token>
#include <vector>

namespace stitchkit {

/// Thread-safe. Holds memory for files that are locked only.
class FileLocks {
 public:
  /// Unlocks when it goes. Must not outlive the FileLocks.
  class Held {
   public:
    Held() = default;
    Held(FileLocks& locks, const FileIdentity& file) : locks_(&locks), file_(file) {}
    Held(Held&& other) noexcept : locks_(std::exchange(other.locks_, nullptr)), file_(other.file_) {}
    Held& operator=(Held&&) = delete;
    ~Held();
    /// False when `stop` was requested before the lock was free.
    explicit operator bool() const noexcept { return locks_ != nullptr; }

   private:
    FileLocks* locks_ = nullptr;
    FileIdentity file_;
  };

  /// Waits until nobody else holds the file.
  Held lock(const FileIdentity& file, const std::stop_token& stop);

 private:
  void unlock(const FileIdentity& file);

  std::mutex mutex_;
  std::condition_variable_any freed_;
  std::vector<FileIdentity> held_;
};

}  // namespace stitchkit
