// Where text may be cut: between characters.
#pragma once

#include <cstddef>
#include <string_view>

namespace stitchkit {

/// The most bytes of one character that can stand before or after a byte of it.
inline constexpr std::size_t kCharacterReach = 3;

/// Where the character ends that `position` stands inside of; `position` itself when it stands inside of none, as
/// between characters, at both ends, and in what is no UTF-8.
std::size_t characterEnd(std::string_view bytes, std::size_t position);

}  // namespace stitchkit
