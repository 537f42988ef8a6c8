#include "codingtools/discovery_tools.h"

#include "codingtools/file_error.h"
#include "codingtools/tool_start.h"

namespace stitchkit {

Result<GlobResult> globTool(const ToolContext& context, const GlobInput& input) {
  const Result<AllowedDirectory> allowed = openAllowedDirectory(
      context, input.path, {{"operation", "glob"}, {"pattern", input.pattern}, {"path", input.path}});
  if (!allowed) {
    return allowed.error();
  }
  const Slots::Held slot = context.searches.take(context.stop);
  if (!slot) {
    return fileWorkCancelled();
  }
  Result<GlobResult> result =
      globFiles(context.workspace, allowed->path, input.pattern, context.searchScope(), context.stop);
  if (!result) {
    return readingError(std::move(result).error(), allowed->path);
  }
  return result;
}

Result<SearchFilesOutput> searchFilesTool(const ToolContext& context, const FileSearch& input) {
  const char* mode = input.mode == FileSearch::Mode::kPath ? "path" : "content";
  if (Result<void> allowed =
          context.guard.authorize({{"operation", "search"}, {"query", input.query}, {"mode", mode}}, context.stop);
      !allowed) {
    return std::move(allowed).error();
  }
  const WorkspacePath root = WorkspacePath::root();
  if (Result<void> seen = context.guard.checkPath(root, context.stop); !seen) {
    return std::move(seen).error();
  }
  const Slots::Held slot = context.searches.take(context.stop);
  if (!slot) {
    return fileWorkCancelled();
  }
  Result<SearchResult> result = searchFiles(context.workspace, input, context.searchScope(), context.stop);
  if (!result) {
    return readingError(std::move(result).error(), root);
  }
  return SearchFilesOutput{std::move(*result), input.context > 0};
}

}  // namespace stitchkit
