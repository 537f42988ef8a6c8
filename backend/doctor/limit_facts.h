// Whether this process may open files and start processes enough for a launch: tried, not computed, since others share
// in some of the limits.
#pragma once

#include "backend/doctor/doctor_facts.h"

namespace stitchkit {

/// Opens files; none of them stays.
LimitFacts tryOpenFiles();

/// Starts children that do nothing and are gone when this returns, with the rights that this process has now. Before
/// threads exist.
LimitFacts tryProcesses();

}  // namespace stitchkit
