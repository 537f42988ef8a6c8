#include "codingtools/file_tools.h"
#include "codingtools/text_window.h"
#include "codingtools/tool_path.h"

#include <algorithm>

namespace stitchkit {

Result<ReadFileOutput> readFile(const ToolContext& context, const ReadFileInput& input) {
  const Result<WorkspacePath> path = parseToolPath(input.path, RootPath::kRefused, context.limits.maxPathBytes);
  if (!path) {
    return path.error();
  }
  if (Result<void> seen = context.guard.checkPath(*path, context.stop); !seen) {
    return std::move(seen).error();
  }
  const Result<OpenedFile> file = context.files.open(*path);
  if (!file) {
    return file.error();
  }
  if (Result<void> allowed = context.guard.authorize({{"operation", "read"}, {"path", input.path}}, context.stop);
      !allowed) {
    return std::move(allowed).error();
  }
  if (Result<void> same = context.files.confirm(*path, file->identity); !same) {
    return std::move(same).error();
  }
  const std::size_t most = context.limits.maxReadBytes;
  Result<TextWindow> window =
      readTextWindow(file->fd.get(), input.offset, std::min(input.maxBytes.value_or(most), most));
  if (!window) {
    return std::move(window).error().withDetail("path", input.path);
  }
  Result<std::optional<std::string>> digest = context.digests.of(file->fd.get(), context.stop);
  if (!digest) {
    return std::move(digest).error();
  }
  ReadFileOutput output;
  output.path = input.path;
  output.bytes = window->text.size();
  output.text = std::move(window->text);
  output.sha256 = std::move(*digest);
  output.truncated = window->truncated;
  if (window->truncated) {
    output.nextOffset = window->end;
  }
  return output;
}

}  // namespace stitchkit
