// Where a search looks and where it ends, for `glob` and `search_files` alike.
#pragma once

#include "codingtools/path_gate.h"
#include "codingtools/tool_limits.h"
#include "codingtools/tree_walk.h"

#include <cstddef>
#include <string>
#include <unordered_set>

namespace stitchkit {

/// PROTOCOL.md, section 7; `coding.create` may name others.
// NOLINTNEXTLINE(cert-err58-cpp): without memory at its start the program ends
inline const std::unordered_set<std::string> kExcludedDirectories{".git",     ".next", ".stitchkit",  "build",
                                                                  "coverage", "dist",  "node_modules"};

struct SearchScope {
  std::size_t maxFiles = ToolLimits().maxSearchFiles;
  std::size_t maxDepth = ToolLimits().maxSearchDepth;
  std::size_t maxResults = ToolLimits().maxSearchResults;
  std::size_t maxReadBytes = ToolLimits().maxReadBytes;
  std::size_t maxPathBytes = ToolLimits().maxPathBytes;
  std::unordered_set<std::string> excludedDirectories = kExcludedDirectories;
  PathGate* gate = nullptr;  ///< not owned; asked about what is found, not about where the search begins

  [[nodiscard]] WalkOptions walkOptions() const {
    return {maxDepth, maxFiles, maxResults, {excludedDirectories, nullptr, maxPathBytes}, gate};
  }
};

}  // namespace stitchkit
