// The exclusive right to a session: a file `lease` in its directory, and the kernel's lock on that file. The file's
// text is for operators; whether a lease is held only the lock decides, so that neither a reused PID nor a copied file
// nor a clock matters.
#pragma once

#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

namespace stitchkit {

/// Held while the object lives. Exclusive between processes, and between objects of one process. Movable; not
/// thread-safe.
class Lease {
 public:
  /// Takes the lease of the session whose directory is open as `session`. `staging` is a private directory on the same
  /// file system, where the file is made before it appears, locked and complete, under its name.
  /// kBusy when somebody holds it, and when the file there was not written by this program: that is left alone, an
  /// operator must look. A lease whose owner is dead is taken over.
  static Result<Lease> acquire(int session, int staging);

  enum class Holder { kNobody, kOwner, kDeadOwner, kForeign };
  /// Whose it is at this moment, for a list: what is to be done needs the lease itself. Where a dead owner left the
  /// file, its lock is tried for an instant, and whoever acquires just then may hear that it is busy.
  static Holder look(int session);

  /// For removing a session where no file can be made any more (a full disk): holds the file of a dead owner, or none
  /// where there is none; then it keeps nobody from acquiring. Errors as acquire().
  static Result<Lease> claim(int session);

  Lease(Lease&&) noexcept = default;
  Lease& operator=(Lease&&) = delete;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  /// As release().
  ~Lease() { release(); }

  /// Whether a dead owner had it: guests of that owner may still be about (stray_guests.h).
  [[nodiscard]] bool tookOver() const noexcept { return tookOver_; }
  [[nodiscard]] bool held() const noexcept { return file_.valid(); }

  /// Frees it and removes the file, if the name still means our file. Idempotent.
  void release() noexcept;
  /// Frees it and leaves the file, as if the owner had died: the next owner takes over, and deals with what a dead
  /// owner leaves.
  void abandon() noexcept { file_.reset(); }

 private:
  Lease(UniqueFd session, UniqueFd file, bool tookOver)
      : session_(std::move(session)), file_(std::move(file)), tookOver_(tookOver) {}

  UniqueFd session_;
  UniqueFd file_;  ///< holds the lock; close-on-exec, so that no guest keeps it
  bool tookOver_;
};

}  // namespace stitchkit
