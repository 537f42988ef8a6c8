#include "backend/storage/lease.h"

#include "backend/storage/files.h"
#include "backend/storage/json_text.h"
#include "codingtools/contained_open.h"
#include "codingtools/regular_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <string>

namespace stitchkit {

namespace {

constexpr const char* kName = "lease";
constexpr const char* kFormat = "stitchkit-sandbox lease 1";
constexpr std::size_t kMaxBytes = 4096;
/// How often the file may change hands between looking and locking.
constexpr int kMaxLockAttempts = 100;

Error inUse() {
  return Error(ErrorKind::kBusy, "The session is in use")
      .withHint("Stop the handle that owns the session, or end the process that holds it.");
}

Error foreign() {
  return Error(ErrorKind::kBusy, "The session has a lease that this program did not write")
      .withHint("An operator must find out who owns the session, and remove the lease file if nobody does.");
}

std::string leaseText() {
  std::array<char, 32> since{};
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  const std::size_t length = std::strftime(since.data(), since.size(), "%Y-%m-%dT%H:%M:%SZ", ::gmtime_r(&now, &utc));
  const std::string pid = std::to_string(::getpid());
  return writeStringObject({{"format", kFormat},
                            {"program", "stitchkit-sandbox"},
                            {"pid", pid},
                            {"since", std::string_view(since.data(), length)}}) +
         '\n';
}

/// A new lease file in the staging directory, complete and locked.
Result<UniqueFd> stageLease(int staging) {
  OpenOutcome made = openSegment(staging, kName, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (!made.fd) {
    return storageError(made.error, "make lease");
  }
  int error = ::flock(made.fd.get(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  error = error == 0 ? writeAll(made.fd.get(), leaseText()) : error;
  if (error != 0) {
    static_cast<void>(::unlinkat(staging, kName, 0));
    return storageError(error, "write lease");
  }
  return std::move(made.fd);
}

bool isOurs(int file) {
  const Result<std::string> text = readRegular(file, kMaxBytes);
  return text && stringMember(*text, "format") == kFormat;
}

/// The lease file that is there, once its owner is known to be dead; the descriptor holds its lock. None when it is
/// gone or has changed hands meanwhile.
Result<UniqueFd> lockDeadLease(int session) {
  OpenOutcome opened = openSegment(session, kName, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (opened.error == ENOENT) {
    return UniqueFd();
  }
  if (!opened.fd || !isOurs(opened.fd.get())) {
    return foreign();
  }
  if (::flock(opened.fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK ? inUse() : storageError(errno, "lock lease");
  }
  return names(session, kName, opened.fd.get()) ? std::move(opened.fd) : UniqueFd();
}

/// Puts the staged file under its name. Whether it replaced a dead owner's.
Result<bool> installLease(int session, int staging) {
  for (int attempt = 0; attempt < kMaxLockAttempts; ++attempt) {
    // A link never replaces anything, on every file system; the staged name goes afterwards.
    if (::linkat(staging, kName, session, kName, 0) == 0) {
      static_cast<void>(::unlinkat(staging, kName, 0));
      return false;
    }
    if (errno != EEXIST) {
      return storageError(errno, "link lease");
    }
    // Held until the new file is in place, so that of two who found the owner dead one waits no longer than to hear
    // that it is busy.
    const Result<UniqueFd> dead = lockDeadLease(session);
    if (!dead) {
      return dead.error();
    }
    if (*dead) {
      if (::renameat(staging, kName, session, kName) != 0) {
        return storageError(errno, "replace lease");
      }
      return true;
    }
  }
  return inUse();
}

}  // namespace

Result<Lease> Lease::acquire(int session, int staging) {
  UniqueFd directory(::fcntl(session, F_DUPFD_CLOEXEC, 3));
  if (!directory) {
    return storageError(errno, "dup");
  }
  Result<UniqueFd> file = stageLease(staging);
  if (!file) {
    return file.error();
  }
  const Result<bool> tookOver = installLease(session, staging);
  if (!tookOver) {
    static_cast<void>(::unlinkat(staging, kName, 0));
    return tookOver.error();
  }
  return Lease(std::move(directory), std::move(*file), *tookOver);
}

Result<Lease> Lease::claim(int session) {
  UniqueFd directory(::fcntl(session, F_DUPFD_CLOEXEC, 3));
  if (!directory) {
    return storageError(errno, "dup");
  }
  Result<UniqueFd> file = lockDeadLease(session);
  if (!file) {
    return file.error();
  }
  const bool tookOver = file->valid();
  return Lease(std::move(directory), std::move(*file), tookOver);
}

Lease::Holder Lease::look(int session) {
  const OpenOutcome opened = openSegment(session, kName, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (opened.error == ENOENT) {
    return Holder::kNobody;
  }
  if (!opened.fd || !isOurs(opened.fd.get())) {
    return Holder::kForeign;
  }
  return ::flock(opened.fd.get(), LOCK_SH | LOCK_NB) == 0 ? Holder::kDeadOwner : Holder::kOwner;
}

void Lease::release() noexcept {
  // Nobody else removes or replaces the file while its lock is ours.
  if (file_ && names(session_.get(), kName, file_.get())) {
    static_cast<void>(::unlinkat(session_.get(), kName, 0));
  }
  file_.reset();
}

}  // namespace stitchkit
