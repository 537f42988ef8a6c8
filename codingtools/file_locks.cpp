#include "codingtools/file_locks.h"

#include <algorithm>

namespace stitchkit {

FileLocks::Held::~Held() {
  if (locks_ != nullptr) {
    locks_->unlock(file_);
  }
}

FileLocks::Held FileLocks::lock(const FileIdentity& file, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const bool free = freed_.wait(lock, stop, [&] { return std::find(held_.begin(), held_.end(), file) == held_.end(); });
  if (!free) {
    return {};
  }
  held_.push_back(file);
  return {*this, file};
}

void FileLocks::unlock(const FileIdentity& file) {
  {
    const std::lock_guard lock(mutex_);
    std::erase(held_, file);
  }
  freed_.notify_all();
}

}  // namespace stitchkit
