// UTF-8: validation, and the replacement that a decoder of the web makes (WHATWG: one U+FFFD for each maximal part of
// an ill-formed sequence), so that the host sees what TextDecoder would have given it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stitchkit {

bool isUtf8(std::string_view bytes);

/// The bytes themselves when they are UTF-8, else with U+FFFD for what is not.
std::string toUtf8(std::string_view bytes);

/// The text itself, or its first `characters` characters and "..." when it has more. A byte that is no part of a
/// character counts as one.
std::string excerpt(std::string_view text, std::size_t characters);

}  // namespace stitchkit
