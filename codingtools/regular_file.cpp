#include "codingtools/regular_file.h"

#include "codingtools/file_error.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace stitchkit {

namespace {

/// The file's status, once it is known to be an ordinary file.
Result<struct stat> regularStatus(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return fileError(errno, "fstat");
  }
  if (S_ISDIR(status.st_mode)) {
    return fileError(EISDIR, "fstat");
  }
  struct statfs fileSystem {};
  if (!S_ISREG(status.st_mode)) {
    return fileError(ENXIO, "fstat");
  }
  if (::fstatfs(fd, &fileSystem) != 0) {
    return fileError(errno, "fstatfs");
  }
  if (fileSystem.f_type == PROC_SUPER_MAGIC || fileSystem.f_type == SYSFS_MAGIC) {
    return fileError(ENXIO, "fstatfs");
  }
  return status;
}

}  // namespace

Result<std::string> readRegular(int fd, std::size_t maxBytes) {
  Result<struct stat> status = regularStatus(fd);
  if (!status) {
    return status.error();
  }
  const auto claimed = static_cast<std::uint64_t>(status->st_size);
  if (claimed > maxBytes) {
    return fileTooLarge(claimed, maxBytes);
  }
  // One byte more than expected, so that the end is seen without growing the buffer.
  std::string content(static_cast<std::size_t>(claimed) + 1, '\0');
  std::size_t filled = 0;
  for (;;) {
    const ssize_t got = ::pread(fd, content.data() + filled, content.size() - filled, static_cast<off_t>(filled));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return fileError(errno, "pread");
    }
    if (got == 0) {
      content.resize(filled);
      return content;
    }
    filled += static_cast<std::size_t>(got);
    if (filled > maxBytes) {
      return fileTooLarge(filled, maxBytes);
    }
    if (filled == content.size()) {
      content.resize(std::min(maxBytes, 2 * filled) + 1);
    }
  }
}

std::optional<std::string> readRegularCached(int fd, std::size_t maxBytes) {
  const Result<struct stat> status = regularStatus(fd);
  if (!status || static_cast<std::uint64_t>(status->st_size) > maxBytes) {
    return std::nullopt;
  }
  const auto expected = static_cast<std::size_t>(status->st_size);
  std::string content(expected + 1, '\0');
  const iovec part{content.data(), content.size()};
  // Short: a part is not in memory, or the file changes just now.
  if (::preadv2(fd, &part, 1, 0, RWF_NOWAIT) != static_cast<ssize_t>(expected)) {
    return std::nullopt;
  }
  content.resize(expected);
  return content;
}

Result<void> overwriteRegular(int fd, std::string_view bytes) {
  if (Result<struct stat> status = regularStatus(fd); !status) {
    return status.error();
  }
  if (::ftruncate(fd, 0) != 0) {
    return fileError(errno, "ftruncate");
  }
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = ::pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (put < 0 && errno != EINTR) {
      return fileError(errno, "pwrite");
    }
    done += put > 0 ? static_cast<std::size_t>(put) : 0;
  }
  return {};
}

int writeAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno != EINTR) {
      return errno;
    }
    bytes.remove_prefix(put > 0 ? static_cast<std::size_t>(put) : 0);
  }
  return 0;
}

}  // namespace stitchkit
