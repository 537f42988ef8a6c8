// `stitchkit-sandbox gc`: removes what nobody will use again from a state directory.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "backend/privilege/privilege.h"

namespace stitchkit {

struct GcPlan {
  PrivilegePlan privilege;
  std::optional<std::string> backendName;         ///< none: all of them
  std::optional<std::chrono::seconds> olderThan;  ///< none: no session goes that could be attached
  bool dryRun = false;
  bool json = false;
};

/// "30d", "12h", "90m", "45s": a number and a unit. nullopt for anything else, and for more than a century.
std::optional<std::chrono::seconds> parseAge(std::string_view text);

/// Prints what was looked at on stdout: a line each, or one JSON document. 0 when all that may go is gone; 1 when
/// something could not be looked at, removed or printed, which stderr tells. A state directory that is not there holds
/// nothing: 0, and stderr tells that as well. Call it from main, before any thread exists.
/// Started by root, it becomes the user that `serve` becomes, by the same steps; a state directory that is not there is
/// not made.
int runGc(const GcPlan& plan);

}  // namespace stitchkit
