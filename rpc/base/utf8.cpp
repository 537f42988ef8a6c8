#include "rpc/base/utf8.h"

#include <cstdint>
#include <cstring>

namespace stitchkit {
namespace {

struct Step {
  std::size_t length;  // bytes to go forward, at least 1
  bool valid;
};

bool isContinuation(unsigned char byte, unsigned char low = 0x80, unsigned char high = 0xBF) {
  return byte >= low && byte <= high;
}

// One sequence at the front of `bytes` (Unicode 15, table 3-7). Ill-formed: the length of its maximal subpart.
Step nextSequence(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) {
    return {1, true};
  }
  std::size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    low = lead == 0xE0 ? 0xA0 : low;
    high = lead == 0xED ? 0x9F : high;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    low = lead == 0xF0 ? 0x90 : low;
    high = lead == 0xF4 ? 0x8F : high;
  } else {
    return {1, false};
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (i >= bytes.size() || !isContinuation(at(i), i == 1 ? low : 0x80, i == 1 ? high : 0xBF)) {
      return {i, false};
    }
  }
  return {length, true};
}

std::size_t asciiPrefix(std::string_view bytes) {
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    if ((word & 0x8080808080808080U) != 0) {
      break;
    }
  }
  while (at < bytes.size() && static_cast<unsigned char>(bytes[at]) < 0x80) {
    ++at;
  }
  return at;
}

// Length of the valid front.
std::size_t validPrefix(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    at += asciiPrefix(bytes.substr(at));
    if (at == bytes.size()) {
      break;
    }
    const Step step = nextSequence(bytes.substr(at));
    if (!step.valid) {
      break;
    }
    at += step.length;
  }
  return at;
}

}  // namespace

bool isUtf8(std::string_view bytes) {
  return validPrefix(bytes) == bytes.size();
}

std::string toUtf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t good = validPrefix(bytes);
    text.append(bytes.substr(0, good));
    bytes.remove_prefix(good);
    if (!bytes.empty()) {
      text.append("\xEF\xBF\xBD");
      bytes.remove_prefix(nextSequence(bytes).length);
    }
  }
  return text;
}

std::string excerpt(std::string_view text, std::size_t characters) {
  std::size_t end = 0;
  for (std::size_t count = 0; end < text.size(); ++count) {
    if (count == characters) {
      return std::string(text.substr(0, end)) + "...";
    }
    end += nextSequence(text.substr(end)).length;
  }
  return std::string(text);
}

}  // namespace stitchkit
