// Where things are below the state directory (PROTOCOL.md, section 4), and the descriptors to reach them:
//   <state>/<sha256(name)>/templates/<key>/{data/,ready}
//   <state>/<sha256(name)>/sessions/<id>/{state.json,lease,workspace/}
//   <state>/<sha256(name)>/staging/<random>/        being made or removed (staging.h); ours alone
#pragma once

#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

#include <optional>
#include <string>
#include <string_view>

namespace stitchkit {

/// Paths only; nothing stays open between two calls, so that a state directory that was away or read-only for a while
/// works again when it is back. Immutable and thread-safe. Directories that are missing are made with mode 0700: guests
/// run with the sidecar's uid outside, and nobody else has business here.
class Layout {
 public:
  enum class Area { kTemplates, kSessions, kStaging };

  /// `stateDirectory` is trusted and need not exist yet; `backendName` is any text but "".
  Layout(const std::string& stateDirectory, std::string backendName);

  /// Of a backend whose directory is there (`directoryName`: 64 hex digits) and whose name is not known: backendName()
  /// is "".
  static Layout ofDirectory(const std::string& stateDirectory, std::string_view directoryName);

  [[nodiscard]] const std::string& backendName() const noexcept { return backendName_; }
  /// `<state>/<sha256(name)>`.
  [[nodiscard]] const std::string& namespaceDirectory() const noexcept { return namespaceDirectory_; }

  /// Opens an area, making what is missing on the way.
  [[nodiscard]] Result<UniqueFd> openOrMake(Area area) const;
  /// Opens an area; nullopt when it does not exist. Makes nothing.
  [[nodiscard]] Result<std::optional<UniqueFd>> open(Area area) const;

  /// The area's name on disk.
  static const char* name(Area area) noexcept;

 private:
  struct Place {
    std::string backendName;
    std::string directory;
  };
  explicit Layout(Place place)
      : backendName_(std::move(place.backendName)), namespaceDirectory_(std::move(place.directory)) {}

  std::string backendName_;
  std::string namespaceDirectory_;
};

}  // namespace stitchkit
