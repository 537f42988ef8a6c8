// Typed matchers: says whether a value is what a case expects, and if not, where and why.
#pragma once

#include <optional>
#include <string>

#include "conformance/json_text.h"

namespace conformance {

/// Anything in `expected` is literal (types count: 1 is not 1.0; objects have exactly the members that are named),
/// but for an object with one member that begins with `$`, which is a matcher. README.md beside this file lists them.
/// Returns nullopt on a match, else one line such as `/result/exitCode: expected 0, came 1`.
std::optional<std::string> mismatch(const Json& expected, const Json& actual);

}  // namespace conformance
