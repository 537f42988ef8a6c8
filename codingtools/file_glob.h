// The engine of the tool `glob`.
#pragma once

#include "codingtools/contained_directory.h"
#include "codingtools/search_scope.h"
#include "codingtools/workspace_path.h"
#include "rpc/base/error.h"

#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace stitchkit {

struct GlobResult {
  std::vector<std::string> paths;  ///< from the workspace on, in the order of UTF-16 code units
  bool truncated = false;          ///< files were not walked
  bool resultTruncated = false;    ///< the first paths of more
  std::size_t skippedDirectories = 0;
  std::size_t scannedFiles = 0;  ///< walked, whether they match or not
  std::vector<DeniedPath> denied;
  bool deniedTruncated = false;
};

/// The regular files below `base` whose path from there matches. A base inside an excluded directory is passed over.
/// kBadRequest for the pattern; kPath with `details.errno` where `base` is no directory (ELOOP: a link stands in it);
/// kCancelled; the gate's error. Blocks on the disk and the gate; thread-safe.
Result<GlobResult> globFiles(const ContainedDirectory& workspace, const WorkspacePath& base, std::string_view pattern,
                             const SearchScope& scope, const std::stop_token& stop);

}  // namespace stitchkit
