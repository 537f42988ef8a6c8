#pragma once

#include "backend/doctor/doctor_facts.h"

namespace stitchkit {

/// Looks at the program. `run`: asks for its version as well, with an empty environment, for five seconds at most, and
/// ends whatever it has started.
BubblewrapFacts readBubblewrapFacts(const std::string& path, bool run);

/// "bubblewrap 0.8.0"; nullopt for any other text.
std::optional<std::array<int, 3>> parseBubblewrapVersion(const std::string& line);

}  // namespace stitchkit
