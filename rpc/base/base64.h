// RFC 4648 base64 with padding, by OpenSSL, made strict: no white space, no other alphabet, canonical padding.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stitchkit {

std::string encodeBase64(std::string_view bytes);

/// nullopt when the text is not canonical base64.
std::optional<std::string> decodeBase64(std::string_view text);

}  // namespace stitchkit
