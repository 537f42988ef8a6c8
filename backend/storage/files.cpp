#include "backend/storage/files.h"

#include "codingtools/contained_open.h"
#include "codingtools/file_error.h"
#include "codingtools/regular_file.h"
#include "rpc/base/sha256.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <system_error>

namespace stitchkit {
namespace {

constexpr const char* kStateHint =
    "It has to be a directory that the sidecar's user can make and write, and reach through every folder above; its "
    "log "
    "names what failed.";

}  // namespace

Error storageError(int errnoNumber, std::string_view operation) {
  if (errnoNumber == ENOSPC || errnoNumber == EDQUOT) {
    return fileError(errnoNumber, operation);
  }
  return Error(ErrorKind::kInternal, "The state directory could not be used")
      .withHint(kStateHint)
      .withPrivate(std::string(operation) + ": " + std::generic_category().message(errnoNumber))
      .withErrno(errnoNumber);
}

Error storageError(const Error& error, std::string_view operation) {
  if (error.kind != ErrorKind::kPath) {
    return error;
  }
  return storageError(error.errnoNumber, operation);
}

std::string randomName() {
  std::array<char, 32> bytes{};
  // At most 256 bytes are never cut short, once the kernel's pool is ready, which it waits for.
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error("the kernel gives no random bytes");
  }
  return hexText({bytes.data(), bytes.size()});
}

bool isHexName(std::string_view text) noexcept {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<std::optional<UniqueFd>> openDirectory(int parent, const char* name) {
  OpenOutcome opened = openSegment(parent, name, O_RDONLY | O_DIRECTORY);
  if (opened.error == ENOENT || opened.error == ENOTDIR || opened.error == ELOOP) {
    return std::optional<UniqueFd>();
  }
  if (!opened.fd) {
    return storageError(opened.error, std::string("open ") + name);
  }
  return std::optional<UniqueFd>(std::move(opened.fd));
}

Result<UniqueFd> openOrMakeDirectory(int parent, const char* name) {
  OpenOutcome opened = openSegment(parent, name, O_RDONLY | O_DIRECTORY);
  if (opened.error == ENOENT) {
    if (::mkdirat(parent, name, 0700) != 0 && errno != EEXIST) {
      return storageError(errno, std::string("mkdir ") + name);
    }
    opened = openSegment(parent, name, O_RDONLY | O_DIRECTORY);
  }
  if (!opened.fd) {
    return storageError(opened.error, std::string("open ") + name);
  }
  return std::move(opened.fd);
}

Result<void> makeDirectory(int parent, const char* name) {
  if (::mkdirat(parent, name, 0700) != 0) {
    return storageError(errno, std::string("mkdir ") + name);
  }
  return {};
}

Result<void> writeNewFile(int parent, const char* name, std::string_view bytes) {
  const OpenOutcome made = openSegment(parent, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
  const int error = made.fd ? writeAll(made.fd.get(), bytes) : made.error;
  if (error != 0) {
    return storageError(error, std::string("write ") + name);
  }
  return {};
}

Result<std::optional<std::string>> readSmallFile(int parent, const char* name, std::size_t maxBytes) {
  const OpenOutcome opened = openSegment(parent, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (opened.error == ENOENT || opened.error == ELOOP || opened.error == ENXIO) {
    return std::optional<std::string>();
  }
  if (!opened.fd) {
    return storageError(opened.error, std::string("open ") + name);
  }
  Result<std::string> content = readRegular(opened.fd.get(), maxBytes);
  if (content) {
    return std::optional<std::string>(std::move(*content));
  }
  const ErrorKind kind = content.error().kind;
  if (kind == ErrorKind::kPath || kind == ErrorKind::kLimit) {
    return std::optional<std::string>();
  }
  return content.error();
}

bool names(int parent, const char* name, int fd) {
  struct stat named {};
  struct stat opened {};
  return ::fstatat(parent, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && ::fstat(fd, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

int renameNew(int fromDirectory, const char* from, int toDirectory, const char* to) {
  if (::renameat2(fromDirectory, from, toDirectory, to, RENAME_NOREPLACE) == 0) {
    return 0;
  }
  if (errno != EINVAL && errno != ENOSYS) {
    return errno;
  }
  // A file system without the flag (NFS). A plain rename never replaces a directory that has entries, and all that we
  // move so are directories.
  struct stat status {};
  if (::fstatat(toDirectory, to, &status, AT_SYMLINK_NOFOLLOW) == 0) {
    return EEXIST;
  }
  if (::renameat(fromDirectory, from, toDirectory, to) == 0) {
    return 0;
  }
  return errno == ENOTEMPTY ? EEXIST : errno;
}

}  // namespace stitchkit
