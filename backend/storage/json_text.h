// The few JSON texts on disk: objects of strings, written as JavaScript's JSON.stringify writes them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stitchkit {

using StringMembers = std::vector<std::pair<std::string_view, std::string_view>>;

/// Appends the string literal that JSON.stringify gives for UTF-8 text: `\b \t \n \f \r \" \\`, other control
/// characters as `\u00xx` in lower case, everything else as it is.
void appendJsonString(std::string& out, std::string_view text);

/// `{"name":"value",...}` in the given order.
std::string writeStringObject(const StringMembers& members);

/// Whether `text` is a JSON object of exactly these members, in any order.
bool isStringObject(std::string_view text, const StringMembers& members);

/// The value of a member that is a string; "" when the text is no JSON object or has no such member.
std::string stringMember(std::string_view text, std::string_view name);

}  // namespace stitchkit
