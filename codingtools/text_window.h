// A part of a file as text, cut between characters.
#pragma once

#include "rpc/base/error.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace stitchkit {

struct TextWindow {
  std::string text;
  std::uint64_t bytes = 0;  ///< that the text stands for
  std::uint64_t end = 0;    ///< the offset where the next window starts
  bool truncated = false;   ///< bytes remain from `end` on
};

/// What becomes of bytes that are no UTF-8.
enum class Malformed : bool { kRefused, kReplaced };

/// At most `maxBytes` bytes (0 counts as 1) from `offset` on: an offset inside a character moves to the next one, a cut
/// inside a character includes it, so that while bytes remain the window is never empty. Beyond the end it is empty.
/// Bytes of the window that are no UTF-8: kBadRequest with `details.reason` invalid_utf8; what lies around it does not
/// matter; or U+FFFD in the text for each part of them. Memory stays within `maxBytes` and a few. The file may change
/// meanwhile; each byte is read once.
Result<TextWindow> readTextWindow(int fd, std::uint64_t offset, std::size_t maxBytes,
                                  Malformed malformed = Malformed::kRefused);

/// The same of what `read(offset, count)` gives: up to so many bytes from there, fewer at the end only.
using ReadBytes = std::function<Result<std::string>(std::uint64_t offset, std::size_t count)>;
Result<TextWindow> textWindow(const ReadBytes& read, std::uint64_t offset, std::size_t maxBytes, Malformed malformed);

/// kBadRequest with `details.reason` invalid_utf8 and a hint.
Error notUtf8();

}  // namespace stitchkit
