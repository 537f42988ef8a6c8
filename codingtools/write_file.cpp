#include "codingtools/file_tools.h"
#include "codingtools/tool_path.h"

#include <boost/json/array.hpp>

namespace stitchkit {

namespace json = boost::json;

namespace {

json::object requestFor(const WriteFileInput& input, const WritePlan& plan) {
  json::array directories;
  for (const std::string& directory : plan.missingDirectories) {
    directories.emplace_back(directory);
  }
  return {{"operation", "write"},
          {"path", input.path},
          {"bytes", input.content.size()},
          {"overwrite", input.overwrite},
          {"createsDirectories", std::move(directories)}};
}

/// Of writers that nobody was asked about the last one wins; what the host allowed is replacing the file that it knew.
ToolFiles::Existing existingFile(const ToolContext& context, const WriteFileInput& input) {
  if (!input.overwrite) {
    return ToolFiles::Existing::kKept;
  }
  return context.guard.asksHost() ? ToolFiles::Existing::kAsPlanned : ToolFiles::Existing::kReplaced;
}

}  // namespace

Result<WriteFileOutput> writeFile(const ToolContext& context, const WriteFileInput& input) {
  const Result<WorkspacePath> path = parseToolPath(input.path, RootPath::kRefused, context.limits.maxPathBytes);
  if (!path) {
    return path.error();
  }
  if (input.content.size() > context.limits.maxWriteBytes) {
    return contentTooLarge(input.path, input.content.size(), context.limits.maxWriteBytes);
  }
  if (Result<void> seen = context.guard.checkPath(*path, context.stop); !seen) {
    return std::move(seen).error();
  }
  Result<WritePlan> plan = context.files.planWrite(*path);
  if (!plan) {
    return std::move(plan).error();
  }
  if (Result<void> allowed = context.guard.authorize(requestFor(input, *plan), context.stop); !allowed) {
    return std::move(allowed).error();
  }
  Result<ReplacedFile> written = context.files.write(*plan, input.content, existingFile(context, input));
  if (!written) {
    return std::move(written).error();
  }
  context.replaced.push_back(std::move(*written));
  return WriteFileOutput{input.path, input.content.size(), std::move(plan->missingDirectories)};
}

Error contentTooLarge(const std::string& path, std::size_t bytes, std::size_t limit) {
  return Error(ErrorKind::kBadRequest, "The content is too large")
      .withDetail("path", path)
      .withDetail("bytes", static_cast<std::int64_t>(bytes))
      .withDetail("maxWriteBytes", static_cast<std::int64_t>(limit))
      .withHint("Write less at once, or split the file.");
}

}  // namespace stitchkit
