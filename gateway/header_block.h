// What a header block looks like as bytes: rules that a lenient parser would smooth over.
#pragma once

#include <cstddef>
#include <string_view>

namespace stitchkit {

/// Where the header block that begins at 0 ends, its empty line included; npos when it does not end yet.
/// @param scanned bytes that an earlier call has seen.
std::size_t headerBlockEnd(std::string_view bytes, std::size_t scanned);

/// No line end but CR LF, no CR, NUL or other control character but TAB inside a line, no folded line, no TAB in a
/// `Host` line. Also true of the begin of a block.
/// @param final the block is whole, so that a CR at its very end counts as well.
bool headerBlockIsStrict(std::string_view block, bool final);

/// Lines of the block behind the first one.
std::size_t headerFieldLines(std::string_view block);

}  // namespace stitchkit
