// Turns what stands in a case into values: captured values and generators of long inputs.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "conformance/json_text.h"

namespace conformance {

/// Captured values by name.
using Variables = std::map<std::string, Json>;

/// Replaces in place, at any depth (member names included):
///   "${name}"                  the captured value with its type; inside a longer string its text
///   {"$repeat": [text, n]}     the text n times
///   {"$fill": [value, n]}      an array of n times the value
///   {"$concat": [text, ...]}   the texts, joined
///   {"$base64": text}          the text's bytes in base64
/// Returns what is wrong (an unknown name, a misshapen generator), or nullopt.
std::optional<std::string> expand(Json& value, const Variables& variables);

}  // namespace conformance
