// The tools that find files (PROTOCOL.md, section 7).
#pragma once

#include "codingtools/file_glob.h"
#include "codingtools/file_search.h"
#include "codingtools/tool_context.h"
#include "rpc/base/error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stitchkit {

struct ListDirectoryInput {
  std::string path;
};
struct ListedEntry {
  std::string name;  ///< UTF-8; with U+FFFD where it is not
  const char* kind = "";
  std::optional<std::uint64_t> bytes;  ///< of a file
  bool excluded = false;               ///< a directory that `glob` and `search_files` pass over
  bool addressable = true;             ///< its name is UTF-8 and holds no backslash, so that a path can name it
};
struct ListedDenial {
  std::string path;
  const char* kind = "";
};
struct ListDirectoryOutput {
  std::string path;
  std::vector<ListedEntry> entries;
  bool truncated = false;
  std::vector<ListedDenial> denied;
  bool deniedTruncated = false;
};
Result<ListDirectoryOutput> listDirectory(const ToolContext& context, const ListDirectoryInput& input);

struct GlobInput {
  std::string pattern;
  std::string path;
};
Result<GlobResult> globTool(const ToolContext& context, const GlobInput& input);

struct SearchFilesOutput {
  SearchResult result;
  bool withContext = false;  ///< lines around the matches were asked for
};
Result<SearchFilesOutput> searchFilesTool(const ToolContext& context, const FileSearch& input);

}  // namespace stitchkit
