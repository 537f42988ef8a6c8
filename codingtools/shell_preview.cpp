#include "codingtools/shell_preview.h"

#include "codingtools/character_cut.h"
#include "rpc/base/utf8.h"

#include <algorithm>

namespace stitchkit {

namespace {

std::string cut(std::string_view output, std::size_t budget, ShellPreview& counts) {
  if (output.size() <= budget) {
    counts.headBytes += output.size();
    return toUtf8(output);
  }
  const std::size_t half = budget / 2;
  const std::size_t head = characterEnd(output, budget - half);
  const std::size_t tail = std::max(head, characterEnd(output, output.size() - half));
  counts.headBytes += head;
  counts.tailBytes += output.size() - tail;
  counts.omittedBytes += tail - head;
  return toUtf8(output.substr(0, head)) + toUtf8(output.substr(tail));
}

}  // namespace

ShellPreview previewOf(std::string_view standardOutput, std::string_view standardError, std::size_t budget) {
  const bool both = !standardOutput.empty() && !standardError.empty();
  ShellPreview preview;
  preview.standardOutput = cut(standardOutput, both ? budget - budget / 2 : budget, preview);
  preview.standardError = cut(standardError, both ? budget / 2 : budget, preview);
  return preview;
}

}  // namespace stitchkit
