#pragma once

#include "backend/doctor/doctor_facts.h"

namespace stitchkit {

/// Does below the state directory what a sidecar does there, and removes it. Makes the state directory when missing.
StateDirectoryFacts tryStateDirectory(const std::string& path);

}  // namespace stitchkit
