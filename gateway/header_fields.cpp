#include "gateway/header_fields.h"

#include <algorithm>
#include <array>

namespace stitchkit {
namespace {

constexpr std::array<std::string_view, 15> kReservedFields = {
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
};

bool isTokenCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool isControl(unsigned char byte) {
  return (byte < 0x20 && byte != '\t') || byte == 0x7F;
}

bool isBlank(char c) {
  return c == ' ' || c == '\t';
}

}  // namespace

bool isHttpToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), isTokenCharacter);
}

std::string lowerCaseAscii(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return lower;
}

bool equalsAscii(std::string_view text, std::string_view lower) noexcept {
  return text.size() == lower.size() && std::equal(text.begin(), text.end(), lower.begin(), [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
         });
}

bool isContentLength(std::string_view text) noexcept {
  constexpr std::size_t kDigitsOfInt64 = 18;
  return !text.empty() && text.size() <= kDigitsOfInt64 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string foldedFieldName(std::string_view name) {
  std::string folded = lowerCaseAscii(name);
  std::replace(folded.begin(), folded.end(), '_', '-');
  return folded;
}

bool isReservedField(std::string_view folded) {
  return std::find(kReservedFields.begin(), kReservedFields.end(), folded) != kReservedFields.end();
}

std::string_view fieldValueFault(std::string_view utf8) {
  if (!utf8.empty() && (isBlank(utf8.front()) || isBlank(utf8.back()))) {
    return "must not have white space at either end";
  }
  for (const char c : utf8) {
    const auto byte = static_cast<unsigned char>(c);
    if (isControl(byte)) {
      return "must not hold control characters, such as CR, LF or NUL";
    }
    if (byte > 0xC3) {  // leads a character above U+00FF
      return "must not hold characters above U+00FF";
    }
  }
  return "";
}

std::string latin1(std::string_view utf8) {
  std::string bytes;
  bytes.reserve(utf8.size());
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto byte = static_cast<unsigned char>(utf8[i]);
    if (byte < 0x80 || i + 1 == utf8.size()) {
      bytes += utf8[i];
    } else {
      bytes += static_cast<char>((byte & 3U) << 6U | (static_cast<unsigned char>(utf8[++i]) & 0x3FU));
    }
  }
  return bytes;
}

std::string utf8OfLatin1(std::string_view bytes) {
  std::string utf8;
  utf8.reserve(bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      utf8 += c;
    } else {
      utf8 += static_cast<char>(0xC0U | byte >> 6U);
      utf8 += static_cast<char>(0x80U | (byte & 0x3FU));
    }
  }
  return utf8;
}

}  // namespace stitchkit
