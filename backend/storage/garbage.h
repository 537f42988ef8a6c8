// What a state directory holds that nobody will use again: found, told, and removed.
#pragma once

#include "rpc/base/error.h"

#include <chrono>
#include <ctime>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace stitchkit {

struct GarbageOptions {
  std::string stateDirectory;
  /// The backend to look at; none: each that has a directory there.
  std::optional<std::string> backendName;
  /// Sessions that have been used later than so long ago stay. None: no session goes that could be attached.
  std::optional<std::chrono::seconds> olderThan;
  bool dryRun = false;  ///< changes nothing
};

/// One thing that was looked at.
struct GarbageItem {
  enum class Kind {
    kLeftover,  ///< half made or half removed, or a doctor's trial, of an owner that died (staging.h)
    kOrphan,    ///< a session without a workspace, artifacts at the most: nobody can attach it
    kDamaged,   ///< a session with a workspace and no state that fits: nobody can attach it, but an operator may look
    kSession
  };
  enum class Outcome { kRemoved, kWouldRemove, kKept, kFailed };

  Kind kind = Kind::kSession;
  Outcome outcome = Outcome::kKept;
  /// A stable word. Removed (or would be): "leftover", "orphan", "unused". Kept: "owned" (somebody has it),
  /// "foreign-lease" (a lease that this program did not write: an operator must look), "owner-died" (counts as used
  /// now), "used" (not old enough, or used meanwhile), "no-age" (without `olderThan`). Failed: "failed".
  std::string reason = {};
  std::string backend = {};                 ///< its name; "" where nothing tells it
  std::string name = {};                    ///< of a session its id
  std::optional<std::time_t> lastUse = {};  ///< seconds since the epoch; none for a leftover
  std::string failure = {};                 ///< for the operator; may hold host paths and errno texts
};

/// The wire's words: "leftover" and so on; "removed", "would-remove", "kept", "failed".
std::string_view nameOf(GarbageItem::Kind kind) noexcept;
std::string_view nameOf(GarbageItem::Outcome outcome) noexcept;

/// Looks at leftovers and sessions, and removes what may go; `report` is told of each. Safe beside sidecars at work:
/// what belongs to somebody is never touched, and a session is removed with its lease held. Whoever attaches a session
/// that is just being removed hears SANDBOX_BUSY, then that it is gone. A session whose owner died without stopping
/// counts as used when that is found out. Templates stay: hosts keep their keys. Errors: the state directory cannot be
/// read; a missing one holds nothing. Blocks on the disk.
Result<void> collectGarbage(const GarbageOptions& options, const std::function<void(const GarbageItem&)>& report,
                            const std::stop_token& stop = {});

}  // namespace stitchkit
