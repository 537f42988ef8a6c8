#include "codingtools/directory_entries.h"

#include "codingtools/name_order.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace stitchkit {

namespace {

EntryKind kindOfMode(mode_t mode) {
  return S_ISDIR(mode)   ? EntryKind::kDirectory
         : S_ISREG(mode) ? EntryKind::kFile
         : S_ISLNK(mode) ? EntryKind::kSymlink
                         : EntryKind::kOther;
}

/// Nothing for an entry that is gone.
std::optional<EntryKind> kindOf(int directory, const DirectoryReader::Entry& entry) {
  switch (entry.type) {
    case DT_DIR:
      return EntryKind::kDirectory;
    case DT_REG:
      return EntryKind::kFile;
    case DT_LNK:
      return EntryKind::kSymlink;
    case DT_UNKNOWN:
      break;
    default:
      return EntryKind::kOther;
  }
  struct stat status {};
  if (::fstatat(directory, entry.name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return std::nullopt;
  }
  return kindOfMode(status.st_mode);
}

bool before(const DirectoryEntry& left, const DirectoryEntry& right) {
  const bool leftFirst = left.kind == EntryKind::kDirectory;
  const bool rightFirst = right.kind == EntryKind::kDirectory;
  return leftFirst != rightFirst ? leftFirst : NameOrder::instance().compare(left.name, right.name) < 0;
}

}  // namespace

const char* entryKindName(EntryKind kind) {
  switch (kind) {
    case EntryKind::kDirectory:
      return "directory";
    case EntryKind::kFile:
      return "file";
    case EntryKind::kSymlink:
      return "symlink";
    case EntryKind::kOther:
      break;
  }
  return "other";
}

int DirectoryEntries::read(int directory, std::size_t capacity, const std::stop_token& stop) {
  if (!entries_.empty()) {
    last_ = entries_.back();
  }
  entries_.clear();
  more_ = false;
  if (const int error = reader_.start(directory); error != 0) {
    return error;
  }
  while (const DirectoryReader::Entry* found = reader_.next()) {
    if (stop.stop_requested()) {
      return ECANCELED;
    }
    const std::optional<EntryKind> kind = kindOf(directory, *found);
    DirectoryEntry entry{found->name, kind.value_or(EntryKind::kOther)};
    if (kind && (!last_ || before(*last_, entry))) {
      entries_.push_back(std::move(entry));
    }
    if (entries_.size() >= 2 * capacity + 1) {
      keepFirst(capacity);
    }
  }
  keepFirst(capacity);
  return reader_.error();
}

void DirectoryEntries::keepFirst(std::size_t capacity) {
  const std::size_t kept = std::min(capacity, entries_.size());
  const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(kept);
  std::partial_sort(entries_.begin(), end, entries_.end(), before);
  more_ = more_ || end != entries_.end();
  entries_.erase(end, entries_.end());
}

}  // namespace stitchkit
