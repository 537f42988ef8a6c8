// Reading a directory's entries through a descriptor, with a position that survives the descriptor.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>

namespace stitchkit {

/// One buffer, used for one directory after another. Not thread-safe.
class DirectoryReader {
 public:
  struct Entry {
    const char* name;    ///< valid until the next call
    unsigned char type;  ///< DT_DIR and so on; DT_UNKNOWN where the file system does not say
    off_t next;          ///< where to go on after this entry, for start()
  };

  /// Reads `directory` (readable, not owned, its offset is used) from `position` on; 0 is the beginning. 0 or errno.
  int start(int directory, off_t position = 0);

  /// The next entry; `.` and `..` are left out. nullptr at the end, and when reading failed: then error() is not 0.
  const Entry* next();
  [[nodiscard]] int error() const noexcept { return error_; }

 private:
  std::unique_ptr<std::byte[]> buffer_;  ///< made at the first start()
  int directory_ = -1;
  std::size_t filled_ = 0;
  std::size_t offset_ = 0;
  int error_ = 0;
  Entry entry_{};
};

}  // namespace stitchkit
