// What a model gets of a command's output that is too long for it: the beginning and the end.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stitchkit {

struct ShellPreview {
  std::string standardOutput;  ///< UTF-8, like the next
  std::string standardError;
  std::size_t headBytes = 0;  ///< of both channels together, as bytes of the output itself
  std::size_t tailBytes = 0;
  std::size_t omittedBytes = 0;
};

/// Head and tail of `ceil` and `floor` of half the budget, cut between characters (a cut inside a character takes the
/// whole of it into the head and leaves it out of the tail). When both channels were written to they share the budget,
/// stdout gets `ceil` of the half; what fits its share stands whole, and counts as head.
ShellPreview previewOf(std::string_view standardOutput, std::string_view standardError, std::size_t budget);

}  // namespace stitchkit
