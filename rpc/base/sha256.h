// SHA-256, by OpenSSL.
#pragma once

#include <openssl/sha.h>

#include <string>
#include <string_view>

namespace stitchkit {

/// One digest, fed in pieces. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  void update(std::string_view bytes);
  /// 64 lower-case hex digits. Ends it: not to be used afterwards.
  std::string hex();

 private:
  SHA256_CTX context_;
};

/// 64 lower-case hex digits.
std::string sha256Hex(std::string_view bytes);

/// Two lower-case hex digits a byte.
std::string hexText(std::string_view bytes);

}  // namespace stitchkit
