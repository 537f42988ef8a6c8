// What a regular expression cannot match without.
#pragma once

#include <string>
#include <string_view>

namespace stitchkit {

/// A text that stands in everything that `expression` matches, the rarest that was found; "" when none was. The
/// expression is in RE2's spelling as toRe2Syntax() writes it, and one that RE2 accepts.
std::string requiredLiteral(std::string_view expression);

}  // namespace stitchkit
