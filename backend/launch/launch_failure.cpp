#include "backend/launch/launch_failure.h"

#include <cerrno>

#include "backend/diagnosis/set_up_cause.h"

namespace stitchkit {
namespace {

constexpr char kNotSetUp[] = "The sandbox could not be set up";
constexpr char kNotStarted[] = "The guest could not be started";

std::string detailOf(const LaunchReport& report) {
  return "launch helper, step " + std::to_string(report.step) + ": " + errnoName(report.error);
}

}  // namespace

Error launchReportError(const LaunchReport& report) {
  switch (report.step) {
    case kLaunchStepDirectory:
      return pathError("The working directory cannot be entered", report.error);
    case kLaunchStepFile:
      return pathError("The path cannot be used", report.error);
    case kLaunchStepExec:
      if (report.error == E2BIG) {
        return Error(ErrorKind::kLimit, "Arguments and environment are too large for the kernel")
            .withReason("arguments");
      }
      break;
    case kLaunchStepFilter:
      return unavailableBecause(kNotStarted, Cause::kSeccompUnavailable).withPrivate(detailOf(report));
    default:
      break;
  }
  return Error(ErrorKind::kUnavailable, kNotStarted).withPrivate(detailOf(report));
}

std::string exhaustedResource(const SandboxEnd& end) {
  return end.outOfMemory ? "memory" : end.outOfProcesses ? "processes" : "";
}

Error killedFromOutside() {
  return Error(ErrorKind::kUnavailable, "The sandbox was ended from outside")
      .withHint("See who killed it: an operator, or the kernel for want of memory.")
      .withReason("sandbox-killed");
}

Error setUpError(const SandboxEnd& end) {
  if (end.misplaced) {
    return Error(ErrorKind::kUnavailable, "The session's workspace was replaced on the host")
        .withHint("Stop the handle and see what stands in the workspace's place.")
        .withReason("workspace-replaced");
  }
  // Processes of ours are not refused for the guest's sake: only memory is shared.
  if (end.outOfMemory) {
    return Error(ErrorKind::kLimit, "The session's memory is used up")
        .withReason("memory")
        .withDetail("resource", "memory")
        .withHint("Give the session more memoryBytes, or let fewer commands run at once.")
        .withPrivate(end.setUpText);
  }
  if (end.timedOut) {
    return unavailableBecause(kNotSetUp, Cause::kSetUpTimeout).withPrivate(end.setUpText);
  }
  if (end.ready) {
    return killedFromOutside();
  }
  std::string detail = end.signalled ? "bwrap died of a signal" : "bwrap exited with " + std::to_string(end.exitCode);
  if (!end.setUpText.empty()) {
    detail += ": " + end.setUpText;
  }
  // A few small files: no work that the loop would notice.
  const Cause cause = end.signalled ? Cause::kSetUpFailed
                                    : causeOfSetUp(end.setUpText, readMachineFacts(), lookAtProgram(end.bubblewrap));
  return unavailableBecause(kNotSetUp, cause).withPrivate(std::move(detail));
}

}  // namespace stitchkit
