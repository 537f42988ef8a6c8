// The entries of one directory as `list_directory` shows them, in order, in bounded memory however many there are.
#pragma once

#include "codingtools/directory_reader.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace stitchkit {

enum class EntryKind : std::uint8_t { kDirectory, kFile, kSymlink, kOther };

/// "directory", "file", "symlink", "other".
const char* entryKindName(EntryKind kind);

struct DirectoryEntry {
  std::string name;  ///< any bytes
  EntryKind kind = EntryKind::kOther;
};

/// Directories first, then the rest, each in NameOrder. Not thread-safe.
class DirectoryEntries {
 public:
  /// Reads the directory for the first `capacity` entries that come after those of the reading before; what comes after
  /// them the directory is read for again. 0, errno, or ECANCELED.
  int read(int directory, std::size_t capacity, const std::stop_token& stop);

  [[nodiscard]] const std::vector<DirectoryEntry>& entries() const noexcept { return entries_; }
  /// Whether read() would find more.
  [[nodiscard]] bool hasMore() const noexcept { return more_; }

 private:
  void keepFirst(std::size_t capacity);

  DirectoryReader reader_;
  std::vector<DirectoryEntry> entries_;
  std::optional<DirectoryEntry> last_;  ///< of the reading before
  bool more_ = false;
};

}  // namespace stitchkit
