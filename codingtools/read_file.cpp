#include "codingtools/file_tools.h"
#include "codingtools/text_window.h"
#include "codingtools/tool_start.h"
#include "rpc/base/limits.h"
#include "rpc/base/sha256.h"

#include <algorithm>

namespace stitchkit {

namespace {

Result<void> authorize(const ToolContext& context, const ReadFileInput& input) {
  return context.guard.authorize({{"operation", "read"}, {"path", input.path}}, context.stop);
}

std::size_t windowBytes(const ToolContext& context, const ReadFileInput& input) {
  return std::min(input.maxBytes.value_or(context.limits.maxReadBytes), context.limits.maxReadBytes);
}

ReadFileOutput outputFor(const ReadFileInput& input, TextWindow window, std::optional<std::string> digest) {
  ReadFileOutput output;
  output.path = input.path;
  output.bytes = window.text.size();
  output.text = std::move(window.text);
  output.sha256 = std::move(digest);
  output.truncated = window.truncated;
  if (window.truncated) {
    output.nextOffset = window.end;
  }
  return output;
}

}  // namespace

Result<ReadFileOutput> readFile(const ToolContext& context, const ReadFileInput& input) {
  const Result<WorkspacePath> path = seenPath(context, input.path, RootPath::kRefused);
  if (!path) {
    return path.error();
  }
  const Result<OpenedFile> file = context.files.open(*path);
  if (!file) {
    return file.error();
  }
  if (Result<void> allowed = authorize(context, input); !allowed) {
    return std::move(allowed).error();
  }
  if (Result<void> same = context.files.confirm(*path, file->identity); !same) {
    return std::move(same).error();
  }
  Result<TextWindow> window = readTextWindow(file->fd.get(), input.offset, windowBytes(context, input));
  if (!window) {
    return std::move(window).error().withDetail("path", input.path);
  }
  Result<std::optional<std::string>> digest = context.digests.of(file->fd.get(), context.stop);
  if (!digest) {
    return std::move(digest).error();
  }
  return outputFor(input, std::move(*window), std::move(*digest));
}

std::optional<ReadFileOutput> readCachedFile(const ToolContext& context, const ReadFileInput& input) {
  const Result<WorkspacePath> path = seenPath(context, input.path, RootPath::kRefused);
  if (!path || !authorize(context, input)) {
    return std::nullopt;
  }
  const std::optional<std::string> content = context.workspace.readCachedFile(*path, limits::kReadOnLoopBytes);
  if (!content) {
    return std::nullopt;
  }
  const auto part = [&](std::uint64_t offset, std::size_t count) -> Result<std::string> {
    return offset < content->size() ? content->substr(offset, count) : std::string();
  };
  Result<TextWindow> window = textWindow(part, input.offset, windowBytes(context, input), Malformed::kRefused);
  if (!window) {
    return std::nullopt;
  }
  return outputFor(input, std::move(*window), sha256Hex(*content));
}

}  // namespace stitchkit
