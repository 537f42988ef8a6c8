// Base64 and SHA-256, by OpenSSL; the runner shares no code with what it judges.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace conformance {

std::string encodeBase64(std::string_view bytes);

/// nullopt unless the text is canonical, padded base64.
std::optional<std::string> decodeBase64(std::string_view text);

/// Lower-case hex.
std::string sha256Hex(std::string_view bytes);

bool isUtf8(std::string_view bytes);

}  // namespace conformance
