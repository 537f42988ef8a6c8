// Standard output of a command that prints a text and ends.
#pragma once

#include <string_view>

namespace stitchkit {

/// Puts something in the place of those of the descriptors 0, 1 and 2 that are closed, so that no file that is opened
/// later is taken for one of them. Nothing can be written to such a standard output. From main, first of all.
void holdStandardStreams() noexcept;

/// Writes the text whole to standard output. Where that fails, stderr says why, and the answer is false.
[[nodiscard]] bool writeStandardOutput(std::string_view text) noexcept;

}  // namespace stitchkit
