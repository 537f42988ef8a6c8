#include "codingtools/tool_start.h"

namespace stitchkit {

Result<WorkspacePath> seenPath(const ToolContext& context, const std::string& text, RootPath root) {
  Result<WorkspacePath> path = parseToolPath(text, root, context.limits.maxPathBytes);
  if (path) {
    if (Result<void> seen = context.guard.checkPath(*path, context.stop); !seen) {
      return std::move(seen).error();
    }
  }
  return path;
}

Result<AllowedDirectory> openAllowedDirectory(const ToolContext& context, const std::string& text,
                                              const boost::json::object& request) {
  const Result<WorkspacePath> path = seenPath(context, text, RootPath::kAllowed);
  if (!path) {
    return path.error();
  }
  const Result<FileIdentity> before = context.files.identifyDirectory(*path);
  if (Result<void> allowed = context.guard.authorize(request, context.stop); !allowed) {
    return std::move(allowed).error();
  }
  if (!before) {
    return before.error();
  }
  Result<UniqueFd> directory = context.files.openSameDirectory(*path, *before);
  if (!directory) {
    return std::move(directory).error();
  }
  return AllowedDirectory{*path, std::move(*directory)};
}

}  // namespace stitchkit
