#pragma once

#include "backend/doctor/doctor_facts.h"

namespace stitchkit {

/// In a child that is gone when this returns. To be called before threads exist.
NamespaceTrial tryNamespaces();

}  // namespace stitchkit
