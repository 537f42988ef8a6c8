#include "codingtools/text_window.h"

#include "codingtools/character_cut.h"
#include "codingtools/file_error.h"
#include "rpc/base/utf8.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace stitchkit {

namespace {

/// Up to `count` bytes from `offset` on.
Result<std::string> readSome(int fd, std::uint64_t offset, std::size_t count) {
  std::string bytes(count, '\0');
  std::size_t filled = 0;
  while (filled < count) {
    const ssize_t got = ::pread(fd, bytes.data() + filled, count - filled, static_cast<off_t>(offset + filled));
    if (got < 0 && errno != EINTR) {
      return fileError(errno, "pread");
    }
    if (got == 0) {
      break;
    }
    filled += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace

Error notUtf8() {
  return Error(ErrorKind::kBadRequest, "The file is not UTF-8 text")
      .withDetail("reason", "invalid_utf8")
      .withHint("Only text can be read with this tool; look at the file with a declared program.");
}

Result<TextWindow> readTextWindow(int fd, std::uint64_t offset, std::size_t maxBytes, Malformed malformed) {
  return textWindow([fd](std::uint64_t from, std::size_t count) { return readSome(fd, from, count); }, offset, maxBytes,
                    malformed);
}

Result<TextWindow> textWindow(const ReadBytes& readBytes, std::uint64_t offset, std::size_t maxBytes,
                              Malformed malformed) {
  if (offset > static_cast<std::uint64_t>(INT64_MAX) - maxBytes - 4 * kCharacterReach) {
    return TextWindow{{}, 0, offset, false};
  }
  const std::size_t before = static_cast<std::size_t>(std::min<std::uint64_t>(offset, kCharacterReach));
  // One byte more than can be of use, so that its presence says that something remains.
  const std::size_t wanted = before + kCharacterReach + std::max<std::size_t>(maxBytes, 1) + kCharacterReach + 1;
  const Result<std::string> read = readBytes(offset - before, wanted);
  if (!read) {
    return read.error();
  }
  const std::string_view bytes(*read);
  if (bytes.size() <= before) {
    return TextWindow{{}, 0, offset, false};
  }
  const std::size_t begin = characterEnd(bytes, before);
  const std::size_t cut = std::min(begin + std::max<std::size_t>(maxBytes, 1), bytes.size());
  const std::size_t end = cut == bytes.size() ? cut : characterEnd(bytes, cut);
  const std::string_view text = bytes.substr(begin, end - begin);
  if (malformed == Malformed::kRefused && !isUtf8(text)) {
    return notUtf8();
  }
  return TextWindow{toUtf8(text), text.size(), offset - before + end, end < bytes.size()};
}

}  // namespace stitchkit
