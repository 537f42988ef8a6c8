#include "backend/launch/launch_failure.h"

#include <cerrno>

namespace stitchkit {

Error launchReportError(const LaunchReport& report) {
  switch (report.step) {
    case kLaunchStepDirectory:
      return pathError("the working directory cannot be entered", report.error);
    case kLaunchStepFile:
      return pathError("the path cannot be used", report.error);
    case kLaunchStepExec:
      if (report.error == E2BIG) {
        return Error(ErrorKind::kLimit, "arguments and environment are too large for the kernel")
            .withReason("arguments");
      }
      break;
    default:
      break;
  }
  return Error(ErrorKind::kUnavailable, "the guest could not be started")
      .withPrivate("launch helper, step " + std::to_string(report.step) + ": " + errnoName(report.error));
}

Error setUpError(const SandboxEnd& end) {
  if (end.timedOut) {
    return Error(ErrorKind::kUnavailable, "the sandbox was not set up in time").withPrivate(end.setUpText);
  }
  if (end.ready) {
    return Error(ErrorKind::kUnavailable, "the sandbox was ended from outside");
  }
  std::string detail = end.signalled ? "bwrap died of a signal" : "bwrap exited with " + std::to_string(end.exitCode);
  if (!end.setUpText.empty()) {
    detail += ": " + end.setUpText;
  }
  return Error(ErrorKind::kUnavailable, "the sandbox could not be set up")
      .withHint("check that bubblewrap works for this user and that user namespaces are enabled")
      .withPrivate(std::move(detail));
}

}  // namespace stitchkit
