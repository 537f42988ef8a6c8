// A directory as a capability: whoever holds one can reach what is inside, and nothing else.
#pragma once

#include "codingtools/durability.h"
#include "codingtools/staging_directory.h"
#include "codingtools/workspace_path.h"
#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace stitchkit {

/// Which file or directory it is, whatever it is called.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  static FileIdentity of(const struct stat& status) { return {status.st_dev, status.st_ino}; }
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// What may stand where a file is put: anything, nothing (else EEXIST), or one file (else ESTALE).
struct ExpectedTarget {
  enum class Kind : std::uint8_t { kAnything, kNothing, kFile } kind = Kind::kAnything;
  FileIdentity file = {};
};

/// Owns one O_PATH descriptor of a directory. Everything is opened below that descriptor without following symbolic
/// links (contained_open.h), so that guests who rename, replace and link inside it meanwhile cannot lead an operation
/// outside. An operation that meets a link does nothing and fails with an error for which isSymlink() holds.
///
/// Errors, unless an operation says more: kPath with `details.errno` (ENOENT, ENOTDIR, EISDIR, EACCES, ENAMETOOLONG,
/// ELOOP, ETXTBSY, EROFS and so on) for what the caller can put right; ENXIO is a FIFO, a socket or a device; kLimit
/// with reason "storage" for a full disk; kInternal for the rest.
///
/// Thread-safe: operations are const and keep no state here. They block on the disk, never on a guest.
class ContainedDirectory {
 public:
  /// Whether replaceFile makes missing directories.
  enum class Parents : bool { kMustExist, kCreate };
  /// What replaceFile does with a file that is there.
  enum class Replacing : std::uint8_t {
    kAsWriting,  ///< set-user-id and set-group-id are dropped, as by any write; where the directory permits no
                 ///< replacing (no write permission, or sticky) the file itself is overwritten, as a guest would, not
                 ///< atomically
    kWhole       ///< its mode stays whole, and where the directory permits no replacing it stays as it is
  };

  /// Opens a directory of the host. `hostPath` is trusted (links in it are followed).
  static Result<ContainedDirectory> open(const std::string& hostPath);
  /// Takes a descriptor of a directory, O_PATH or not.
  static Result<ContainedDirectory> adopt(UniqueFd directory);

  /// For launching and for the *at calls of our own code; stays owned here.
  [[nodiscard]] int descriptor() const noexcept { return directory_.get(); }

  /// The content of a regular file of at most `maxBytes` bytes; larger: kLimit with details `bytes` and `limit`. A
  /// FIFO is opened for an instant, which lets a guest that waits for a reader go on, and fails there.
  [[nodiscard]] Result<std::string> readFile(const WorkspacePath& path, std::size_t maxBytes) const;

  /// The same where it can be had from memory alone: for a thread that must not wait for the disk. Nothing where it
  /// cannot, and nothing instead of any error; ask readFile() then.
  [[nodiscard]] std::optional<std::string> readCachedFile(const WorkspacePath& path, std::size_t maxBytes) const;

  /// Gives the file this content, atomically: readers see the old or the new one. New files are 0644, new directories
  /// 0755, whatever the umask. An existing file keeps its permissions and must be writable. It is replaced, so that its
  /// other hard links keep the old content, but for what `replacing` says. Directories made on the way stay when the
  /// write fails later.
  /// As durable as `staging` says; where that fails the file is there all the same, and the error is kInternal.
  /// @return what the caller shall settle() once the answer is out.
  [[nodiscard]] Result<ReplacedFile> replaceFile(const WorkspacePath& path, std::string_view bytes, Parents parents,
                                                 StagingDirectory& staging, const ExpectedTarget& expected = {},
                                                 Replacing replacing = Replacing::kAsWriting) const;

  /// Removes the file, link or tree (remove_tree.h). A missing path is fine, and so is one below a file, as for
  /// `rm -rf`; the root is refused with EBUSY.
  [[nodiscard]] Result<void> removeTree(const WorkspacePath& path, const std::stop_token& stop = {},
                                        const Durability& durability = {}) const;

 private:
  explicit ContainedDirectory(UniqueFd directory) : directory_(std::move(directory)) {}

  [[nodiscard]] Result<UniqueFd> openParent(const WorkspacePath& path, Parents parents,
                                            const StagingDirectory& staging) const;
  [[nodiscard]] Result<UniqueFd> makeDirectories(const WorkspacePath& path, const StagingDirectory& staging) const;

  UniqueFd directory_;
};

}  // namespace stitchkit
