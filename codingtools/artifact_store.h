// The sidecar's own store of long command output: durable with its session and out of every guest's reach.
#pragma once

#include "codingtools/staging_directory.h"
#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace stitchkit {

/// An artifact, open for reading.
struct OpenedArtifact {
  UniqueFd fd;
  off_t begin = 0;          ///< where the content starts in the file
  std::uint64_t bytes = 0;  ///< of the content
  std::string request;      ///< the operation that made it, as JSON: reading it asks the host for that again
};

/// A directory that no guest can reach, made with the first artifact. At most kMaxTotalBytes of files: the oldest go
/// first. A file appears whole, and as durable as the staging directory says. Thread-safe within one
/// process, which owns the session's lease; blocks on the disk.
class ArtifactStore {
 public:
  static constexpr std::uint64_t kMaxTotalBytes = 64ULL * 1024 * 1024;

  /// `session` is the session's directory; it is not owned. Both outlive the store.
  ArtifactStore(int session, StagingDirectory& staging) : session_(session), staging_(staging) {}

  /// @return the reference, `artifact-1` and so on, never used twice in a session's life. kLimit for more than fits or
  /// a full disk.
  Result<std::string> write(std::string_view content, std::string_view request);

  /// kSpillReferenceUnknown with `details.reference`.
  [[nodiscard]] Result<OpenedArtifact> open(std::string_view reference) const;

 private:
  int session_;
  StagingDirectory& staging_;
  std::mutex writing_;
};

}  // namespace stitchkit
