#include "gateway/header_block.h"

#include <algorithm>

#include "gateway/header_fields.h"

namespace stitchkit {
namespace {

bool lineIsStrict(std::string_view line) {
  const auto forbidden = [](char c) { return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f'; };
  if (line.starts_with(' ') || line.starts_with('\t') || std::any_of(line.begin(), line.end(), forbidden)) {
    return false;
  }
  return !equalsAscii(line.substr(0, 5), "host:") || line.find('\t') == std::string_view::npos;
}

}  // namespace

std::size_t headerBlockEnd(std::string_view bytes, std::size_t scanned) {
  const std::size_t end = bytes.find("\r\n\r\n", scanned < 3 ? 0 : scanned - 3);
  return end == std::string_view::npos ? end : end + 4;
}

bool headerBlockIsStrict(std::string_view block, bool final) {
  while (!block.empty()) {
    const std::size_t end = block.find('\n');
    if (end == std::string_view::npos) {
      if (!final && block.ends_with('\r')) {
        block.remove_suffix(1);
      }
      return lineIsStrict(block);
    }
    if (end == 0 || block[end - 1] != '\r' || !lineIsStrict(block.substr(0, end - 1))) {
      return false;
    }
    block.remove_prefix(end + 1);
  }
  return true;
}

std::size_t headerFieldLines(std::string_view block) {
  const auto lines = static_cast<std::size_t>(std::count(block.begin(), block.end(), '\n'));
  return lines < 2 ? 0 : lines - 2;
}

}  // namespace stitchkit
