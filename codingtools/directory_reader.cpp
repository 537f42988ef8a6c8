#include "codingtools/directory_reader.h"

#include <dirent.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace stitchkit {

namespace {
constexpr std::size_t kEntriesBytes = 32UL * 1024;
}

int DirectoryReader::start(int directory, off_t position) {
  if (!buffer_) {
    buffer_ = std::make_unique_for_overwrite<std::byte[]>(kEntriesBytes);
  }
  directory_ = directory;
  filled_ = 0;
  offset_ = 0;
  error_ = ::lseek(directory, position, SEEK_SET) < 0 ? errno : 0;
  return error_;
}

const DirectoryReader::Entry* DirectoryReader::next() {
  for (;;) {
    if (offset_ == filled_) {
      const ssize_t got = ::getdents64(directory_, buffer_.get(), kEntriesBytes);
      // ENOENT: the directory itself was removed meanwhile, so that it has no more entries.
      error_ = got < 0 && errno != ENOENT ? errno : 0;
      if (got <= 0) {
        return nullptr;
      }
      filled_ = static_cast<std::size_t>(got);
      offset_ = 0;
    }
    const auto* const record = reinterpret_cast<const dirent64*>(buffer_.get() + offset_);
    offset_ += record->d_reclen;
    const std::string_view name(static_cast<const char*>(record->d_name));
    if (name != "." && name != "..") {
      entry_ = {static_cast<const char*>(record->d_name), record->d_type, record->d_off};
      return &entry_;
    }
  }
}

}  // namespace stitchkit
