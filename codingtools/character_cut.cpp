#include "codingtools/character_cut.h"

#include "rpc/base/utf8.h"

#include <algorithm>

namespace stitchkit {

namespace {

bool isContinuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

/// What a character has that begins with this byte; 1 for what begins none.
std::size_t lengthFrom(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte >= 0xF0U ? 4 : byte >= 0xE0U ? 3 : byte >= 0xC0U ? 2 : 1;
}

}  // namespace

std::size_t characterEnd(std::string_view bytes, std::size_t position) {
  for (std::size_t back = 1; back <= std::min(kCharacterReach, position); ++back) {
    const std::size_t begin = position - back;
    if (isContinuation(bytes[begin])) {
      continue;
    }
    const std::size_t end = begin + lengthFrom(bytes[begin]);
    return end > position && end <= bytes.size() && isUtf8(bytes.substr(begin, end - begin)) ? end : position;
  }
  return position;
}

}  // namespace stitchkit
