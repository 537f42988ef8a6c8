#include "codingtools/artifact_lines.h"

#include "codingtools/character_cut.h"
#include "codingtools/file_error.h"
#include "codingtools/literal_finder.h"
#include "rpc/base/utf8.h"

#include <algorithm>

namespace stitchkit {

namespace {

/// Looked through between two looks at the stop token.
constexpr std::size_t kSearchedPiece = 4UL * 1024 * 1024;

std::int64_t newlines(std::string_view text) {
  return std::count(text.begin(), text.end(), '\n');
}

}  // namespace

std::string matchText(std::string_view line, std::size_t found, std::size_t bytes) {
  if (line.size() <= kMatchTextBytes) {
    return toUtf8(line);
  }
  const std::size_t before = (kMatchTextBytes - std::min(bytes, kMatchTextBytes)) / 4;
  const std::size_t begin = std::min(found - std::min(found, before), line.size() - kMatchTextBytes);
  const std::size_t from = characterEnd(line, begin);
  return toUtf8(line.substr(from, characterEnd(line, begin + kMatchTextBytes) - from));
}

Result<std::vector<ArtifactMatch>> matchingLines(std::string_view text, const std::string& query, std::size_t most,
                                                 const std::stop_token& stop) {
  std::vector<ArtifactMatch> matches;
  if (query.find('\n') != std::string::npos) {
    return matches;
  }
  const LiteralFinder finder(query);
  std::int64_t line = 1;
  std::size_t counted = 0;  // newlines before it are in `line`
  for (std::size_t at = 0; at < text.size() && matches.size() < most;) {
    if (stop.stop_requested()) {
      return fileWorkCancelled();
    }
    const std::size_t pieceEnd = std::min(text.size(), at + kSearchedPiece + query.size());
    const std::size_t found = finder.find(text.substr(0, pieceEnd), at);
    if (found == std::string_view::npos) {
      at = pieceEnd == text.size() ? pieceEnd : pieceEnd - query.size();
      continue;
    }
    const std::size_t lastEnd = text.rfind('\n', found);
    const std::size_t begin = lastEnd == std::string_view::npos ? 0 : lastEnd + 1;
    const std::size_t end = std::min(text.find('\n', found), text.size());
    line += newlines(text.substr(counted, begin - counted));
    counted = begin;
    matches.push_back({line, matchText(text.substr(begin, end - begin), found - begin, query.size())});
    at = end + 1;
  }
  return matches;
}

}  // namespace stitchkit
