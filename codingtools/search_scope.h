// Where a search looks and where it ends, for `glob` and `search_files` alike.
#pragma once

#include "codingtools/path_gate.h"
#include "codingtools/tree_walk.h"

#include <cstddef>
#include <string>
#include <unordered_set>

namespace stitchkit {

struct SearchScope {
  std::size_t maxFiles = 10000;
  std::size_t maxDepth = 32;
  std::size_t maxResults = 100;
  std::size_t maxReadBytes = 262144;
  std::size_t maxPathBytes = 4096;
  std::unordered_set<std::string> excludedDirectories{".git",     ".next", ".stitchkit",  "build",
                                                      "coverage", "dist",  "node_modules"};
  PathGate* gate = nullptr;  ///< not owned; asked about what is found, not about where the search begins

  [[nodiscard]] WalkOptions walkOptions() const {
    return {maxDepth, maxFiles, maxResults, {excludedDirectories, nullptr, maxPathBytes}, gate};
  }
};

}  // namespace stitchkit
