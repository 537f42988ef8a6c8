#pragma once

#include <memory>
#include <string>

#include "backend/cgroups/cgroup_delegation.h"
#include "backend/doctor/doctor_facts.h"
#include "rpc/base/error.h"

namespace stitchkit {

struct LaunchPlan {
  std::string stateDirectory;
  std::string bubblewrap;
  bool staysRoot = false;
  std::shared_ptr<const CgroupDelegation> cgroups;
};

/// Makes a session as `backend.create` does, runs a program in it as `session.run` does, and deletes it, in a directory
/// of its own below the state directory, which is gone afterwards. Once in a process; threads exist from then on.
LaunchTrial tryLaunch(const LaunchPlan& plan);

/// What was thrown as a failure of the launch: a thread or a descriptor that could not be had, as a rule. To be called
/// in a catch clause.
Error thrownError();

}  // namespace stitchkit
