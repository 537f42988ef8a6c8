// A few files of one directory, searched together by one thread.
#pragma once

#include "codingtools/line_search.h"
#include "codingtools/tree_walk.h"
#include "rpc/base/unique_fd.h"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace stitchkit {

/// Memory for the content of a file, used for one after another; grows to the largest one.
class ReadBuffer {
 public:
  /// At least `bytes` bytes; the first `kept` of the content stay.
  char* reserve(std::size_t bytes, std::size_t kept);

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0;
};

struct BatchLimits {
  std::size_t maxReadBytes = 0;
  std::size_t maxLines = 0;  ///< files after so many found lines are not searched
  dev_t device = 0;          ///< of the workspace: files elsewhere are looked at more closely
};

/// Filled by the thread that walks, searched by one other, then read by a third. Not thread-safe by itself.
class SearchBatch {
 public:
  enum class Outcome : std::uint8_t {
    kSearched,
    kPassedOver,  ///< gone, or no regular file
    kLeftOut,     ///< too large, or not readable
  };
  struct File {
    std::string path;
    std::size_t nameBegin = 0;
    WalkCounts counts;  ///< of the walk, with this file
    Outcome outcome = Outcome::kPassedOver;
    LinesFound found;
    std::string text;  ///< the whole content, without a byte-order mark, when lines were found
  };
  static constexpr std::size_t kMostFiles = 32;

  /// False, and nothing happens, when it is full or of another directory.
  bool add(const WalkedFile& file, const WalkCounts& counts);
  [[nodiscard]] bool empty() const noexcept { return files_.empty(); }

  /// Each file as a whole or not at all. Ends early when stopped.
  void search(const LineSearch& search, const BatchLimits& limits, ReadBuffer& buffer, const std::stop_token& stop);

  [[nodiscard]] std::vector<File>& files() noexcept { return files_; }
  /// Of the texts that are kept.
  [[nodiscard]] std::size_t textBytes() const noexcept { return textBytes_; }

 private:
  std::shared_ptr<const UniqueFd> directory_;
  std::vector<File> files_;
  std::size_t textBytes_ = 0;
};

}  // namespace stitchkit
