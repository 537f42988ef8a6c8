#pragma once

#include "backend/doctor/doctor_facts.h"

namespace stitchkit {

/// Looks at the program. `run`: asks for its version as well, with an empty environment, for five seconds at most, and
/// ends whatever it has started.
BubblewrapFacts readBubblewrapFacts(const std::string& path, bool run);

}  // namespace stitchkit
