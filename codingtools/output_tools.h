// The tools that read what a command wrote (PROTOCOL.md, section 7).
#pragma once

#include "codingtools/tool_context.h"
#include "rpc/base/error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stitchkit {

struct ReadOutputInput {
  std::string reference;
  std::uint64_t offset = 0;
  std::optional<std::size_t> maxBytes;
};
struct ReadOutputOutput {
  std::string reference;
  ArtifactWindow window;
};
/// `context.artifacts` is there.
Result<ReadOutputOutput> readOutput(const ToolContext& context, const ReadOutputInput& input);

struct SearchOutputInput {
  std::string reference;
  std::string query;
  std::optional<std::size_t> maxMatches;
};
struct SearchOutputOutput {
  std::string reference;
  std::vector<ArtifactMatch> matches;
};
/// `context.artifacts` is there. VALIDATION_ERROR for more matches than the toolset's `maxSearchResults`.
Result<SearchOutputOutput> searchOutput(const ToolContext& context, const SearchOutputInput& input);

}  // namespace stitchkit
