// What the machine must be able to do for these tests to mean anything.
#pragma once

#include <string>

namespace stitchkit::testing {

/// "" when an ordinary user can run a program in new user, PID and network namespaces by /usr/bin/bwrap; else what
/// went wrong and what to do. Tests must fail on it: skipped isolation tests would look like passed ones.
std::string isolationProblem();

}  // namespace stitchkit::testing
