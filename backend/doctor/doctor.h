// `stitchkit-sandbox doctor`: does isolation work here, and if not, why not?
#pragma once

#include <string>

#include "backend/privilege/privilege.h"

namespace stitchkit {

struct DoctorPlan {
  PrivilegePlan privilege;
  std::string bubblewrap;
  bool json = false;
};

/// Prints a report on stdout: 0 when isolation works, 1 when it does not, or when the report could not be written. Call
/// it from main, before any thread exists.
///
/// It becomes the user that `serve` would become, by the same steps, and makes and removes a session as `serve` would.
/// What it makes is gone afterwards, the state directory too when that was missing. What `serve` would change for good
/// stays changed: a state directory of root's that it takes over is the other user's from then on.
int runDoctor(const DoctorPlan& plan);

}  // namespace stitchkit
