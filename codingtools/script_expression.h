// Regular expressions as models write them, in JavaScript's spelling, for RE2.
#pragma once

#include "rpc/base/error.h"

#include <string>
#include <string_view>

namespace stitchkit {

/// The same expression in RE2's spelling: named groups, `\/`, `\uXXXX` (surrogate pairs too), `\u{X}`, `\cX`, `\0`,
/// `[^]`, `[]`, JavaScript's `\s`, `[` in a class, and letters that JavaScript takes for themselves after a backslash.
/// kBadRequest with `details.pattern` and a hint for back-references and look-around, which need more than linear time.
/// What is wrong in both spellings is left for RE2 to refuse.
Result<std::string> toRe2Syntax(std::string_view pattern);

}  // namespace stitchkit
