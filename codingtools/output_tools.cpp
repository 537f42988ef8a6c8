#include "codingtools/output_tools.h"

#include "codingtools/tool_definitions.h"

#include <algorithm>

namespace stitchkit {

namespace {

/// The operation itself, and then the one that made the artifact: whoever may not run a command may not read what it
/// wrote either.
Result<void> authorize(const ToolContext& context, const std::string& reference, const boost::json::object& request) {
  if (Result<void> allowed = context.guard.authorize(request, context.stop); !allowed) {
    return allowed;
  }
  const auto made = context.artifacts->authorization(reference, context.stop);
  if (!made) {
    return made.error();
  }
  return *made ? context.guard.authorize(**made, context.stop) : Result<void>();
}

}  // namespace

Result<ReadOutputOutput> readOutput(const ToolContext& context, const ReadOutputInput& input) {
  const std::size_t most = std::min(input.maxBytes.value_or(context.limits.maxReadBytes), context.limits.maxReadBytes);
  if (Result<void> allowed = authorize(context, input.reference,
                                       {{"operation", "artifact-read"},
                                        {"reference", input.reference},
                                        {"offset", input.offset},
                                        {"maxBytes", most}});
      !allowed) {
    return std::move(allowed).error();
  }
  Result<ArtifactWindow> window = context.artifacts->read(input.reference, input.offset, most, context.stop);
  if (!window) {
    return std::move(window).error();
  }
  return ReadOutputOutput{input.reference, std::move(*window)};
}

Result<SearchOutputOutput> searchOutput(const ToolContext& context, const SearchOutputInput& input) {
  const std::size_t limit = context.limits.maxSearchResults;
  const std::size_t most = input.maxMatches.value_or(std::min(kUsualOutputMatches, limit));
  if (most > limit) {
    std::vector<ValidationIssue> issues{{"input.maxMatches", "must be at most " + std::to_string(limit)}};
    return Error(ErrorKind::kValidation, "input.maxMatches " + issues.front().message).withDetail("issues", issues);
  }
  if (Result<void> allowed = authorize(context, input.reference,
                                       {{"operation", "artifact-search"},
                                        {"reference", input.reference},
                                        {"query", input.query},
                                        {"maxMatches", most}});
      !allowed) {
    return std::move(allowed).error();
  }
  auto matches = context.artifacts->search(input.reference, input.query, most, context.stop);
  if (!matches) {
    return std::move(matches).error();
  }
  return SearchOutputOutput{input.reference, std::move(*matches)};
}

}  // namespace stitchkit
