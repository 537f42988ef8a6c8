// Where state is kept when nobody says where (PROTOCOL.md, 3).
#pragma once

#include "rpc/base/error.h"

#include <functional>
#include <optional>
#include <string>

namespace stitchkit {

/// What the choice depends on.
struct StateDirectoryPlaces {
  std::optional<std::string>
      xdgStateHome;                 ///< $XDG_STATE_HOME; empty or relative counts as not set (XDG base directories)
  std::optional<std::string> home;  ///< $HOME; the same
  /// Whether the user that the sidecar becomes reaches a path. Empty: root is not given up, nothing to ask.
  std::function<bool(const std::string&)> reachable;
};

struct StateDirectoryChoice {
  std::string path;
  std::string note;  ///< for the log, when the choice is not the usual one; else ""
};

/// `$XDG_STATE_HOME/stitchkit-sandbox`, else `~/.local/state/stitchkit-sandbox`; for a sidecar that gives root up,
/// /var/lib/stitchkit-sandbox when that cannot be reached (root's home is 0700) or when there is no home.
/// Error (kUnavailable, reason "state-directory-unknown"): neither variable, and root is not given up.
Result<StateDirectoryChoice> chooseStateDirectory(const StateDirectoryPlaces& places);

}  // namespace stitchkit
