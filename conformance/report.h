// What a person reads.
#pragma once

#include <ostream>

#include "conformance/case_run.h"

namespace conformance {

/// One block for a case that failed.
void printFailure(std::ostream& out, const Case& testCase, const Failure& failure);

}  // namespace conformance
