#include "codingtools/tree_listing.h"

#include "codingtools/name_order.h"
#include "rpc/base/utf8.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace stitchkit {

namespace {

constexpr unsigned kEntriesBetweenStops = 1024;

/// For file systems that do not say it in the listing. The answer may be old at once; opening decides.
unsigned char typeOf(int directory, const DirectoryReader::Entry& found) {
  struct stat status {};
  if (found.type != DT_UNKNOWN || ::fstatat(directory, found.name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return found.type;
  }
  return static_cast<unsigned char>(IFTODT(status.st_mode));
}

}  // namespace

int TreeListing::read(int directory, std::string_view prefix, const ListingRules& rules, std::size_t capacity,
                      DirectoryReader& reader, const std::stop_token& stop) {
  if (readBefore_ && !entries_.empty()) {
    last_ = name(entries_.back());
  }
  entries_.clear();
  names_.clear();
  more_ = false;
  std::string path(prefix);
  int error = reader.start(directory);
  unsigned untilStop = kEntriesBetweenStops;
  while (error == 0) {
    const DirectoryReader::Entry* const found = reader.next();
    if (found == nullptr) {
      error = reader.error();
      break;
    }
    add(directory, *found, path, prefix.size(), rules);
    if (entries_.size() >= 2 * capacity) {
      keepFirst(capacity);
    }
    if (--untilStop == 0) {
      untilStop = kEntriesBetweenStops;
      error = stop.stop_requested() ? ECANCELED : 0;
    }
  }
  if (entries_.size() > capacity) {
    keepFirst(capacity);
  }
  std::sort(entries_.begin(), entries_.end(), [&](const Entry& a, const Entry& b) { return before(a, b); });
  readBefore_ = true;
  return error;
}

TreeListing::Kind TreeListing::kindOf(int directory, const DirectoryReader::Entry& found, const ListingRules& rules) {
  const unsigned char type = typeOf(directory, found);
  if (type == DT_REG) {
    return Kind::kFile;
  }
  if (type == DT_LNK) {
    symlinks_ += readBefore_ ? 0 : 1;
  }
  if (type != DT_DIR) {
    return Kind::kNeither;
  }
  if (rules.passedOver.contains(found.name)) {
    directoriesPassedOver_ += readBefore_ ? 0 : 1;
    return Kind::kNeither;
  }
  return Kind::kDirectory;
}

void TreeListing::add(int directory, const DirectoryReader::Entry& found, std::string& path, std::size_t prefixLength,
                      const ListingRules& rules) {
  const Kind kind = kindOf(directory, found, rules);
  const std::string_view name(found.name);
  if (kind == Kind::kNeither || !isUtf8(name)) {
    return;
  }
  const NameOrder& order = NameOrder::instance();
  if (readBefore_ && order.compare(name, last_) <= 0) {
    return;
  }
  if (prefixLength + name.size() > rules.maxPathBytes) {
    pathsTooLong_ = true;
    return;
  }
  if (kind == Kind::kFile && rules.counts) {
    path.resize(prefixLength);
    path += name;
    if (!rules.counts(path)) {
      return;
    }
  }
  entries_.push_back({order.prefix(name), static_cast<std::uint32_t>(names_.size()),
                      static_cast<std::uint16_t>(name.size()), kind == Kind::kDirectory, false});
  names_ += name;
}

bool TreeListing::before(const Entry& left, const Entry& right) const {
  if (left.prefix != right.prefix && left.prefix != NameOrder::kNoPrefix && right.prefix != NameOrder::kNoPrefix) {
    return left.prefix < right.prefix;
  }
  return NameOrder::instance().compare(name(left), name(right)) < 0;
}

void TreeListing::keepFirst(std::size_t capacity) {
  const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(capacity);
  std::nth_element(entries_.begin(), end, entries_.end(), [&](const Entry& a, const Entry& b) { return before(a, b); });
  entries_.erase(end, entries_.end());
  more_ = true;
  compact();
}

void TreeListing::compact() {
  std::string names;
  for (Entry& entry : entries_) {
    const auto begin = static_cast<std::uint32_t>(names.size());
    names += name(entry);
    entry.begin = begin;
  }
  names_ = std::move(names);
}

}  // namespace stitchkit
