#pragma once

namespace stitchkit::testing {

/// Catch2's command line: runs the tests of this program. Returns the exit status.
int runCatch(int argc, char** argv);

}  // namespace stitchkit::testing
