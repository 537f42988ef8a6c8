// What one call of a coding tool works with.
#pragma once

#include "codingtools/artifacts.h"
#include "codingtools/contained_directory.h"
#include "codingtools/file_digests.h"
#include "codingtools/file_locks.h"
#include "codingtools/search_scope.h"
#include "codingtools/slots.h"
#include "codingtools/tool_files.h"
#include "codingtools/tool_guard.h"
#include "codingtools/tool_limits.h"

#include <stop_token>
#include <string>
#include <unordered_set>
#include <vector>

namespace stitchkit {

/// References live as long as the call. A tool runs on a thread of its own, where it may block on the disk and on the
/// host; it looks at `stop` between steps and then fails with kCancelled.
struct ToolContext {
  const ContainedDirectory& workspace;
  const ToolFiles& files;
  ToolGuard& guard;
  FileLocks& locks;
  FileDigests& digests;
  Slots& searches;  ///< so many searches at once, since each holds what it finds
  const ToolLimits& limits;
  const std::unordered_set<std::string>& excludedDirectories;
  const Artifacts* artifacts;           ///< none: the toolset keeps no output
  std::vector<ReplacedFile>& replaced;  ///< what was replaced, to be settled when the answer is out
  std::stop_token stop;

  [[nodiscard]] SearchScope searchScope() const {
    return {limits.maxSearchFiles,
            limits.maxSearchDepth,
            limits.maxSearchResults,
            limits.maxReadBytes,
            limits.maxPathBytes,
            excludedDirectories,
            guard.allowsEveryPath() ? nullptr : &guard};
  }
};

}  // namespace stitchkit
