// The engine of the tool `search_files`.
#pragma once

#include "codingtools/contained_directory.h"
#include "codingtools/search_scope.h"
#include "rpc/base/error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace stitchkit {

struct FileSearch {
  enum class Mode : std::uint8_t { kContent, kPath };

  std::string query;
  Mode mode = Mode::kContent;
  bool regex = false;
  std::size_t context = 0;             ///< lines before and after
  std::optional<std::string> include;  ///< a glob over whole paths
};

struct SearchMatch {
  std::string path;
  std::size_t line = 0;             ///< from 1; 0 where paths are searched, and then all below is empty
  std::string text;                 ///< of the line, with its `\r`
  std::vector<std::string> before;  ///< up to `context` lines, whole
  std::vector<std::string> after;
};

struct SearchResult {
  std::vector<SearchMatch> matches;
  bool truncated = false;        ///< something was left out: of the tree, of the matches, a file, a line
  std::size_t scannedFiles = 0;  ///< whose content was read, or whose path was matched
  std::size_t skippedDirectories = 0;
  std::size_t skippedSymlinks = 0;
  std::vector<DeniedPath> denied;
  bool deniedTruncated = false;
  std::string hint;  ///< "" for none
};

/// Searches the whole workspace; walks on the calling thread, reads and searches there and on up to three more, which
/// end before it returns. The result is the same however many there are: matches in the order of the walk
/// (tree_walk.h), ending where one more than `maxResults` would stand, and counts up to the file where it ends. A file
/// is searched as a whole or not at all: one over `maxReadBytes` is left out (`truncated`), one that is not UTF-8, or
/// gone, is passed over; a byte-order mark belongs to no line. Matches end early (`truncated`) when they grow over
/// `kSearchResultBytes`.
/// kBadRequest for the query (line_search.h) and for `include`; kCancelled; the gate's error. Thread-safe.
Result<SearchResult> searchFiles(const ContainedDirectory& workspace, const FileSearch& search,
                                 const SearchScope& scope, const std::stop_token& stop);

/// The same with so many threads, the calling one counted, instead of one a processor and four at most.
Result<SearchResult> searchFilesWithThreads(const ContainedDirectory& workspace, const FileSearch& search,
                                            const SearchScope& scope, unsigned threads, const std::stop_token& stop);

}  // namespace stitchkit
