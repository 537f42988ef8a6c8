#include "codingtools/tool_session.h"

namespace stitchkit {

Error toolSessionStopped() {
  return Error(ErrorKind::kUnavailable, "The session was stopped")
      .withDetail("reason", "SANDBOX_STOPPED")
      .withHint("Attach to it again with backend.create and its state, and make a new toolset with coding.create.");
}

}  // namespace stitchkit
