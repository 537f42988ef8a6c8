// What counts of one directory, in order, in bounded memory however large the directory is.
#pragma once

#include "codingtools/directory_reader.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace stitchkit {

/// Decides by its path whether a file counts.
using FileFilter = std::function<bool(std::string_view path)>;

/// What is left out of a listing.
struct ListingRules {
  std::unordered_set<std::string> passedOver;  ///< names of directories
  FileFilter counts;                           ///< none: every file does
  std::size_t maxPathBytes = 4096;             ///< longer paths are left out, as nothing could name them
};

/// Regular files that count and directories, names of UTF-8 only, in NameOrder. At most `capacity` at once: the first
/// ones; what comes after them the directory is read for again. Not thread-safe.
class TreeListing {
 public:
  struct Entry {
    std::uint64_t prefix;  ///< NameOrder::prefix()
    std::uint32_t begin;   ///< of the name, in the listing's text
    std::uint16_t length;
    bool directory;
    bool denied;  ///< false after reading: for whoever asks
  };

  /// Reads the entries that come after all that were read before. `prefix` is the directory's path and a slash, "" for
  /// the top. 0, errno, or ECANCELED.
  int read(int directory, std::string_view prefix, const ListingRules& rules, std::size_t capacity,
           DirectoryReader& reader, const std::stop_token& stop);

  [[nodiscard]] std::vector<Entry>& entries() noexcept { return entries_; }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] std::string_view name(const Entry& entry) const noexcept {
    return std::string_view(names_).substr(entry.begin, entry.length);
  }
  /// Whether read() would find more.
  [[nodiscard]] bool hasMore() const noexcept { return more_; }
  /// Of the whole directory, as its first reading found it.
  [[nodiscard]] std::size_t directoriesPassedOver() const noexcept { return directoriesPassedOver_; }
  [[nodiscard]] std::size_t symlinks() const noexcept { return symlinks_; }
  [[nodiscard]] bool pathsTooLong() const noexcept { return pathsTooLong_; }

 private:
  enum class Kind : std::uint8_t { kFile, kDirectory, kNeither };

  void add(int directory, const DirectoryReader::Entry& found, std::string& path, std::size_t prefixLength,
           const ListingRules& rules);
  [[nodiscard]] Kind kindOf(int directory, const DirectoryReader::Entry& found, const ListingRules& rules);
  [[nodiscard]] bool before(const Entry& left, const Entry& right) const;
  void keepFirst(std::size_t capacity);
  void compact();

  std::vector<Entry> entries_;
  std::string names_;
  std::string last_;  ///< the last name of the reading before
  bool readBefore_ = false;
  bool more_ = false;
  std::size_t directoriesPassedOver_ = 0;
  std::size_t symlinks_ = 0;
  bool pathsTooLong_ = false;
};

}  // namespace stitchkit
