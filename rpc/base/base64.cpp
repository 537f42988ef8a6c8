#include "rpc/base/base64.h"

#include <openssl/evp.h>

#include <cstring>

namespace stitchkit {
namespace {

// EVP_*Block take and return int; larger inputs go through in pieces of whole groups.
constexpr std::size_t kEncodePiece = 3UL * (1U << 20);
constexpr std::size_t kDecodePiece = 4UL * (1U << 20);

std::size_t paddingOf(std::string_view text) {
  if (text.empty() || text.back() != '=') {
    return 0;
  }
  return text[text.size() - 2] == '=' ? 2 : 1;
}

// EVP_DecodeBlock skips white space and an end mark ('-'), so neither may reach it.
bool isAlphabet(std::string_view text) {
  static const auto table = [] {
    struct {
      bool allowed[256] = {};
    } made;
    for (const char c : std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")) {
      made.allowed[static_cast<unsigned char>(c)] = true;
    }
    return made;
  }();
  bool all = true;
  for (const char c : text) {
    all = all && table.allowed[static_cast<unsigned char>(c)];
  }
  return all;
}

}  // namespace

std::string encodeBase64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // EVP_EncodeBlock ends its output with NUL
  std::size_t written = 0;
  for (std::size_t at = 0; at < bytes.size(); at += kEncodePiece) {
    const std::string_view piece = bytes.substr(at, kEncodePiece);
    written += static_cast<std::size_t>(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data() + written),
                                                        reinterpret_cast<const unsigned char*>(piece.data()),
                                                        static_cast<int>(piece.size())));
  }
  text.resize(written);
  return text;
}

std::optional<std::string> decodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return std::nullopt;
  }
  const std::size_t padding = paddingOf(text);
  if (!isAlphabet(text.substr(0, text.size() - padding))) {
    return std::nullopt;
  }
  std::string bytes(text.size() / 4 * 3, '\0');
  std::size_t written = 0;
  for (std::size_t at = 0; at < text.size(); at += kDecodePiece) {
    const std::string_view piece = text.substr(at, kDecodePiece);
    const int count =
        EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data() + written),
                        reinterpret_cast<const unsigned char*>(piece.data()), static_cast<int>(piece.size()));
    if (count < 0) {
      return std::nullopt;
    }
    written += static_cast<std::size_t>(count);
  }
  // What stands under the padding must be zero bits, or two texts would mean the same bytes.
  for (std::size_t i = bytes.size() - padding; i < bytes.size(); ++i) {
    if (bytes[i] != '\0') {
      return std::nullopt;
    }
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace stitchkit
