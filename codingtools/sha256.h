// SHA-256, by OpenSSL.
#pragma once

#include <string>
#include <string_view>

namespace stitchkit {

/// 64 lower-case hex digits.
std::string sha256Hex(std::string_view bytes);

/// Two lower-case hex digits a byte.
std::string hexText(std::string_view bytes);

}  // namespace stitchkit
