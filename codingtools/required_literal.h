// What a regular expression cannot match without.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stitchkit {

inline constexpr std::size_t kMostRequiredLiterals = 8;

/// Texts of which at least one stands in everything that `expression` matches, the rarest that were found, not empty
/// and kMostRequiredLiterals at most; none when none were found. The expression is in RE2's spelling as toRe2Syntax()
/// writes it, and one that RE2 accepts.
std::vector<std::string> requiredLiterals(std::string_view expression);

}  // namespace stitchkit
