// The paths of the coding tools (PROTOCOL.md, section 7): stricter than those of sessions, and refused in words that a
// model can act on.
#pragma once

#include "codingtools/workspace_path.h"
#include "rpc/base/error.h"

#include <cstddef>
#include <string_view>

namespace stitchkit {

/// Whether "." names the workspace itself: where a directory is asked for.
enum class RootPath : bool { kRefused, kAllowed };

/// Relative, `/` between ordinary segments. kBadRequest: over `maxBytes` bytes (`details.maxPathBytes`), absolute (with
/// `details.recoveryPath` when it lies in the workspace), NUL, a segment over 255 bytes. kForbidden: a backslash, an
/// empty, `.` or `..` segment. All but the first name the path in `details.path`; all have a hint.
Result<WorkspacePath> parseToolPath(std::string_view text, RootPath root, std::size_t maxBytes);

/// "dir/file"; "." for the workspace itself: how tools name a path.
std::string toolPathText(const WorkspacePath& path);

}  // namespace stitchkit
