#include "codingtools/contained_open.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace stitchkit {

namespace {

/// Set when openat2 turned out to be missing. A process gets a seccomp filter at most on top of what it has, so that
/// the answer never changes back.
std::atomic<bool> openat2Missing{false};

/// EAGAIN has two causes: somebody renamed something while the path was resolved, which passes, and a lease that a
/// guest took on its file, which may last a minute and must not hold us.
constexpr int kMaxOpenAttempts = 64;

open_how beneath(int flags) {
  open_how how{};
  how.flags = static_cast<decltype(how.flags)>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return how;
}

/// A descriptor or -errno.
int openat2Beneath(int directory, const char* relative, int flags) {
  const open_how how = beneath(flags);
  for (int attempt = 1;; ++attempt) {
    const long fd = ::syscall(SYS_openat2, directory, relative, &how, sizeof how);
    if (fd >= 0) {
      return static_cast<int>(fd);
    }
    if (errno != EINTR && (errno != EAGAIN || attempt == kMaxOpenAttempts)) {
      return -errno;
    }
  }
}

/// EPERM is ambiguous: a filter that refuses the call, or a file that may not be opened so. The directory itself can
/// always be opened with O_PATH, unless the call as such is refused.
bool callIsRefused(int directory, int error) {
  if (error != ENOSYS && error != EPERM) {
    return false;
  }
  const int probe = openat2Beneath(directory, ".", O_PATH | O_DIRECTORY);
  UniqueFd owned(probe >= 0 ? probe : -1);
  return probe == -ENOSYS || probe == -EPERM;
}

OpenOutcome walk(int directory, const std::string& relative, int flags) {
  UniqueFd current;
  int at = directory;
  for (std::size_t begin = 0;;) {
    const std::size_t end = relative.find('/', begin);
    const bool last = end == std::string::npos;
    const std::string segment = relative.substr(begin, last ? end : end - begin);
    OpenOutcome step = openSegment(at, segment.c_str(), last ? flags : O_PATH | O_DIRECTORY);
    if (last || !step.fd) {
      return step;
    }
    current = std::move(step.fd);
    at = current.get();
    begin = end + 1;
  }
}

}  // namespace

OpenOutcome openSegment(int directory, const char* name, int flags, unsigned mode) {
  int fd = -1;
  do {
    fd = ::openat(directory, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd >= 0) {
    return {UniqueFd(fd), 0};
  }
  int error = errno;
  struct stat status {};
  // With O_DIRECTORY a link is reported as "not a directory". Only the word is at stake here: nothing was opened.
  if (error == ENOTDIR && ::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode)) {
    error = ELOOP;
  }
  return {UniqueFd(), error};
}

OpenOutcome openBeneath(int directory, const std::string& relative, int flags) {
  static const std::string kItself(".");
  const std::string& path = relative.empty() ? kItself : relative;
  if (!openat2Missing.load(std::memory_order_relaxed)) {
    const int fd = openat2Beneath(directory, path.c_str(), flags);
    if (fd >= 0) {
      return {UniqueFd(fd), 0};
    }
    if (!callIsRefused(directory, -fd)) {
      return {UniqueFd(), -fd};
    }
    openat2Missing.store(true, std::memory_order_relaxed);
  }
  return walk(directory, path, flags);
}

UniqueFd openBeneathCached(int directory, const std::string& relative, int flags) {
  if (relative.empty() || openat2Missing.load(std::memory_order_relaxed)) {
    return {};
  }
  open_how how = beneath(flags);
  how.resolve |= RESOLVE_CACHED;
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, directory, relative.c_str(), &how, sizeof how)));
}

}  // namespace stitchkit
