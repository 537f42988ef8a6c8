// JSON as the runner reads and shows it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace conformance {

using Json = nlohmann::json;

/// Parses one value and nothing behind it. Stricter than most readers: a member name that comes twice is refused, and
/// so are more than 512 levels.
/// On failure nullopt, and `problem` says why.
std::optional<Json> parseStrict(std::string_view text, std::string& problem);

/// One line for a person: long strings and long texts are cut, with the number of bytes left out.
std::string show(const Json& value, std::size_t maxBytes = 600);

/// A value in canonical text, for use as a key.
std::string keyOf(const Json& value);

}  // namespace conformance
