#pragma once

#include "backend/doctor/doctor_facts.h"

namespace stitchkit {

/// Which controllers this process, with the rights that it has now, could use for groups of its own: in version 2 a
/// delegated group, in version 1 any that it may write to. Looks and makes nothing. `root` stands before each path.
CgroupFacts readCgroupFacts(const std::string& root = "");

}  // namespace stitchkit
