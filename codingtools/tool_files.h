// Single files as the coding tools see them: every ordinary mistake in the words of PROTOCOL.md, section 7, and nothing
// done to a file that is not the one that was looked at.
#pragma once

#include "codingtools/contained_directory.h"
#include "codingtools/contained_open.h"
#include "codingtools/staging_directory.h"
#include "codingtools/workspace_path.h"
#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stitchkit {

/// A regular file, open for reading.
struct OpenedFile {
  UniqueFd fd;
  FileIdentity identity;
  std::uint64_t bytes = 0;
};

/// What a write will do, before the host is asked.
struct WritePlan {
  WorkspacePath path = WorkspacePath::root();
  WorkspacePath existing = WorkspacePath::root();  ///< the deepest directory on the way that is there
  FileIdentity existingIdentity;
  std::vector<std::string> missingDirectories;  ///< below it, as tools name them, outermost first
  std::optional<FileIdentity> target;           ///< what has the name itself
};

/// Thread-safe; blocks on the disk, never on a guest. All errors name the path in `details.path` and have a hint:
/// kNotFound (missing), kForbidden (a link itself; no permission), kBadRequest (reading: not a regular file, a segment
/// that is no directory), kConflict (writing: something is in the way, or is not what it was), kLimit (disk full).
class ToolFiles {
 public:
  ToolFiles(const ContainedDirectory& workspace, StagingDirectory& staging)
      : workspace_(workspace), staging_(staging) {}

  [[nodiscard]] Result<OpenedFile> open(const WorkspacePath& path) const;

  /// A directory, open for reading its entries. Never blocks on a guest.
  [[nodiscard]] Result<UniqueFd> openDirectory(const WorkspacePath& path) const;
  [[nodiscard]] Result<FileIdentity> identifyDirectory(const WorkspacePath& path) const;

  /// A conflict unless the path still names that file.
  [[nodiscard]] Result<void> confirm(const WorkspacePath& path, const FileIdentity& file) const;
  /// The same of a directory, which is opened.
  [[nodiscard]] Result<UniqueFd> openSameDirectory(const WorkspacePath& path, const FileIdentity& directory) const;

  [[nodiscard]] Result<WritePlan> planWrite(const WorkspacePath& path) const;
  /// What a write does with a file that has the name.
  enum class Existing : std::uint8_t {
    kKept,      ///< a conflict
    kReplaced,  ///< whichever it is by then
    kAsPlanned  ///< replaced when it is the one that was planned with; another, or one where none was, is a conflict
  };
  /// Atomic. Makes the missing directories; those that somebody else has made meanwhile are fine, but a directory that
  /// stands where `existing` stood is a conflict. A file that is overwritten keeps its mode; what is no regular file is
  /// a conflict in any case, and a directory that permits no replacing kForbidden.
  [[nodiscard]] Result<ReplacedFile> write(const WritePlan& plan, std::string_view content, Existing existing) const;

  /// Replaces the content of the file that `edited` was opened as; a conflict when another has its name by now.
  [[nodiscard]] Result<ReplacedFile> rewrite(const WorkspacePath& path, const FileIdentity& edited,
                                             std::string_view content) const;

 private:
  [[nodiscard]] OpenOutcome openParent(const WorkspacePath& path) const;

  const ContainedDirectory& workspace_;
  StagingDirectory& staging_;
};

/// An engine's error where a tool reads, in the words of ToolFiles.
Error readingError(Error error, const WorkspacePath& path);

}  // namespace stitchkit
