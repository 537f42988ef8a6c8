// A part of a file as text, cut between characters.
#pragma once

#include "rpc/base/error.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace stitchkit {

struct TextWindow {
  std::string text;
  std::uint64_t end = 0;   ///< the offset where the next window starts
  bool truncated = false;  ///< bytes remain from `end` on
};

/// At most `maxBytes` bytes (0 counts as 1) from `offset` on: an offset inside a character moves to the next one, a cut
/// inside a character includes it, so that while bytes remain the window is never empty. Beyond the end it is empty.
/// Bytes of the window that are no UTF-8: kBadRequest with `details.reason` invalid_utf8; what lies around it does not
/// matter. Memory stays within `maxBytes` and a few. The file may change meanwhile; each byte is read once.
Result<TextWindow> readTextWindow(int fd, std::uint64_t offset, std::size_t maxBytes);

/// kBadRequest with `details.reason` invalid_utf8 and a hint.
Error notUtf8();

}  // namespace stitchkit
