// The lines of a text that hold another.
#pragma once

#include "codingtools/artifacts.h"
#include "rpc/base/error.h"

#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace stitchkit {

/// Bytes of a line that a match shows: of a longer one the part around the text that was found.
inline constexpr std::size_t kMatchTextBytes = 8192;

/// A line as a match shows it: whole, or the part around what stands at `found` and is `bytes` long.
std::string matchText(std::string_view line, std::size_t found, std::size_t bytes);

/// The first `most` lines, which end at `\n`, that hold `query` (literally; one that holds `\n` stands nowhere). A line
/// counts once. kCancelled.
Result<std::vector<ArtifactMatch>> matchingLines(std::string_view text, const std::string& query, std::size_t most,
                                                 const std::stop_token& stop);

}  // namespace stitchkit
