// The files that every guest is lent: a made /etc and the launch helper. Made at first use, kept below the state
// directory, shared by all sidecars that use it.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backend/launch/support_sources.h"
#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

namespace stitchkit {

/// Host paths, for LaunchProfile.
struct SupportPaths {
  std::string etcDirectory;
  std::string helper;
};

/// Each set of files is named by what it is made from: the helper, the host's certificates and the like, and this
/// boot (a set that a power cut left half-written is never met again). It appears whole, by one rename, so sidecars may
/// race. A set in use is under a shared lock; whoever takes one up removes those that nobody uses.
/// Thread-safe; blocks on the file system, so not for the loop thread.
class SupportFiles {
 public:
  /// `directory` is made when missing, with its parents. Nothing is touched before the first use.
  explicit SupportFiles(std::string directory);

  /// The files as they should be now. Cheap (a look at the host's directories) once this object has them; while it
  /// lives they stay. When the host's files have changed, launches that are under way keep the older set, which
  /// stays until the next sidecar finds it unused. Errors: kUnavailable.
  Result<SupportPaths> ensure();

  /// Removes what killed sidecars left half made or half removed in `directory`. For the backend's start.
  static void sweep(const std::string& directory);

 private:
  SupportPaths paths() const;
  bool adopt(const std::string& key);
  Result<void> make(const std::string& key);

  std::string directory_;
  std::mutex mutex_;
  std::string key_;  // guarded by mutex_, as is what follows
  std::string stamp_;
  std::vector<SupportSource> sources_;
  std::vector<UniqueFd> usedSets_;  // open directories under a shared lock; the last is key_'s
};

}  // namespace stitchkit
