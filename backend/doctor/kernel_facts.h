#pragma once

#include "backend/doctor/doctor_facts.h"

namespace stitchkit {

/// Asks for each system call in a way that has no effect.
KernelFacts readKernelFacts();

}  // namespace stitchkit
