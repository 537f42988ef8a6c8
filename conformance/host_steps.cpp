#include "conformance/matcher.h"
#include "conformance/step_runner.h"

namespace conformance {

using Problem = StepRunner::Problem;

Problem StepRunner::host(const Json& step) {
  return fakeHost_.configure(step["host"]);
}

Problem StepRunner::expectHost(const Json& step) {
  return mismatch({{"$partial", step["expectHost"]}}, fakeHost_.takeRecord());
}

}  // namespace conformance
