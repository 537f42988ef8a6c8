#include "codingtools/file_digests.h"

#include "codingtools/file_error.h"
#include "rpc/base/sha256.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace stitchkit {

namespace {

/// Smaller ones are digested faster than they are looked up.
constexpr off_t kRememberFrom = 64L * 1024;
constexpr std::size_t kRemembered = 64;
constexpr std::size_t kDigestedPiece = 256UL * 1024;
/// A file that was changed so recently may change again without its times telling (the kernel's clock for them ticks
/// every few milliseconds).
constexpr time_t kSettledSeconds = 2;

bool same(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

Result<std::string> digest(int fd, const std::stop_token& stop) {
  Sha256 sum;
  std::string piece(kDigestedPiece, '\0');
  for (off_t offset = 0;;) {
    if (stop.stop_requested()) {
      return fileWorkCancelled();
    }
    const ssize_t got = ::pread(fd, piece.data(), piece.size(), offset);
    if (got < 0 && errno != EINTR) {
      return fileError(errno, "pread");
    }
    if (got == 0) {
      return sum.hex();
    }
    if (got > 0) {
      sum.update({piece.data(), static_cast<std::size_t>(got)});
      offset += got;
    }
  }
}

}  // namespace

bool FileDigests::Known::describes(const struct stat& status) const {
  return file == FileIdentity::of(status) && size == status.st_size && same(modified, status.st_mtim) &&
         same(changed, status.st_ctim);
}

Result<std::optional<std::string>> FileDigests::of(int fd, const std::stop_token& stop) {
  struct stat before {};
  if (::fstat(fd, &before) != 0) {
    return fileError(errno, "fstat");
  }
  if (static_cast<std::uint64_t>(before.st_size) > kMaxBytes) {
    return std::optional<std::string>();
  }
  if (before.st_size >= kRememberFrom) {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(known_.begin(), known_.end(), [&](const Known& entry) { return entry.describes(before); });
    if (found != known_.end()) {
      return std::optional(found->digest);
    }
  }
  Result<std::string> made = digest(fd, stop);
  if (!made) {
    return made.error();
  }
  struct stat after {};
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  Known entry{FileIdentity::of(before), before.st_size, before.st_mtim, before.st_ctim, *made};
  if (before.st_size >= kRememberFrom && ::fstat(fd, &after) == 0 && entry.describes(after) &&
      after.st_ctim.tv_sec + kSettledSeconds <= now.tv_sec) {
    const std::lock_guard lock(mutex_);
    known_.push_back(std::move(entry));
    if (known_.size() > kRemembered) {
      known_.pop_front();
    }
  }
  return std::optional(std::move(*made));
}

}  // namespace stitchkit
