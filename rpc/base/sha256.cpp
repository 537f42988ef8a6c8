// The functions below EVP, deprecated as they are, do without OpenSSL's providers: those cost a small process two
// megabytes and a millisecond, for the same digest.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "rpc/base/sha256.h"

#include <array>

namespace stitchkit {

Sha256::Sha256() {
  SHA256_Init(&context_);
}

void Sha256::update(std::string_view bytes) {
  SHA256_Update(&context_, bytes.data(), bytes.size());
}

std::string Sha256::hex() {
  std::array<char, SHA256_DIGEST_LENGTH> digest{};
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), &context_);
  return hexText({digest.data(), digest.size()});
}

std::string sha256Hex(std::string_view bytes) {
  Sha256 digest;
  digest.update(bytes);
  return digest.hex();
}

std::string hexText(std::string_view bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4U];
    text += kDigits[static_cast<unsigned char>(byte) & 15U];
  }
  return text;
}

}  // namespace stitchkit
