// Work in progress: what is being made or removed lies in `<ns>/staging/<random>/`, and the kernel's lock on that
// directory says whether somebody is still at it. A kill leaves nothing elsewhere that looks whole and is not.
#pragma once

#include "backend/storage/layout.h"
#include "rpc/base/error.h"
#include "rpc/base/unique_fd.h"

#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace stitchkit {

/// A private, locked directory. Goes with its owner: the destructor removes it and what is left in it (which takes as
/// long as that takes), and what a killed owner left is found by sweepStaging(). Movable; not thread-safe, but for the
/// descriptor.
class StagingEntry {
 public:
  static Result<StagingEntry> make(const Layout& layout);

  StagingEntry(StagingEntry&&) noexcept = default;
  StagingEntry& operator=(StagingEntry&&) = delete;
  StagingEntry(const StagingEntry&) = delete;
  StagingEntry& operator=(const StagingEntry&) = delete;
  ~StagingEntry();

  /// Gives it up without removing it, as a kill would: the next sweep does.
  void leaveToSweeper() noexcept { directory_.reset(); }

  /// The directory, readable.
  [[nodiscard]] int descriptor() const noexcept { return directory_.get(); }
  /// Its path on the host.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  StagingEntry(UniqueFd area, UniqueFd directory, std::string name, std::string path)
      : area_(std::move(area)), directory_(std::move(directory)), name_(std::move(name)), path_(std::move(path)) {}

  UniqueFd area_;
  UniqueFd directory_;  ///< holds the lock
  std::string name_;
  std::string path_;
};

/// A directory below the state directory in which what is half done lies, each entry locked by who is at it.
struct WorkArea {
  std::string path;
  bool (*isUnderWay)(std::string_view name);  ///< other entries are none of a sweeper's business

  /// `<ns>/staging`: all of it.
  static WorkArea staging(const Layout& layout);
  /// `<state>/support`: sets of support files that are not ready, and trials of the doctor.
  static WorkArea support(const std::string& stateDirectory);
};

/// Removes what dead owners left in a backend's staging directory. For the backend's start; safe beside other sidecars
/// and threads at work. What cannot be removed is logged and left for the next time.
void sweepStaging(const Layout& layout, const std::stop_token& stop = {});

/// What is under way or left there at this moment, by name.
struct StagingLook {
  std::string name;
  bool owned;  ///< somebody is at it
};
Result<std::vector<StagingLook>> lookAtWork(const WorkArea& area);

enum class Swept { kRemoved, kOwned };
/// Removes one entry unless somebody is at it; one that is gone is removed. Errors: kInternal, kCancelled.
Result<Swept> sweepWork(const WorkArea& area, const std::string& name, const std::stop_token& stop = {});

}  // namespace stitchkit
