// From facts to findings.
#pragma once

#include <vector>

#include "backend/doctor/doctor_facts.h"
#include "backend/doctor/finding.h"

namespace stitchkit {

/// One finding a check, always the same checks in the same order: limits, user, bubblewrap, kernel, namespaces, proc,
/// state-directory, cgroups, launch. Pure. A launch that worked is believed whatever else the facts seem to say.
std::vector<Finding> diagnose(const DoctorFacts& facts);

}  // namespace stitchkit
