#include "backend/doctor/doctor.h"

#include <pwd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "backend/doctor/bubblewrap_facts.h"
#include "backend/doctor/cgroup_facts.h"
#include "backend/doctor/diagnose.h"
#include "backend/doctor/kernel_facts.h"
#include "backend/doctor/made_directories.h"
#include "backend/doctor/namespace_trial.h"
#include "backend/doctor/report.h"
#include "backend/doctor/state_directory_facts.h"
#include "backend/doctor/trial_launch.h"
#include "backend/privilege/default_state_directory.h"
#include "rpc/base/log.h"

namespace stitchkit {
namespace {

std::string userName() {
  const uid_t uid = ::geteuid();
  const passwd* entry = ::getpwuid(uid);
  const std::string number = std::to_string(uid);
  return entry != nullptr ? std::string(entry->pw_name) + " (" + number + ")" : number;
}

// Facts that need no rights come first: giving up root may fail halfway.
DoctorFacts gatherFacts(const DoctorPlan& plan) {
  DoctorFacts facts;
  facts.user.startedByRoot = ::geteuid() == 0;
  facts.machine = readMachineFacts();
  facts.kernel = readKernelFacts();
  facts.cgroups = readCgroupFacts();
  Result<Privilege> privilege = settlePrivilege(plan.privilege);
  facts.bubblewrap = readBubblewrapFacts(plan.bubblewrap, privilege.has_value());
  facts.namespaces = tryNamespaces();
  if (!privilege) {
    facts.user.error = std::move(privilege).error();
    return facts;
  }
  privilege->steward.dismiss();
  facts.user.staysRoot = privilege->stayedRoot;
  facts.user.name = userName();
  facts.stateDirectory = tryStateDirectory(privilege->stateDirectory);
  if (facts.stateDirectory->error == 0) {
    facts.launch = tryLaunch({privilege->stateDirectory, plan.bubblewrap, privilege->stayedRoot});
  }
  return facts;
}

int examine(const DoctorPlan& plan) {
  const std::vector<Finding> findings = diagnose(gatherFacts(plan));
  std::cout << (plan.json ? jsonReport(findings) : textReport(findings)) << std::flush;
  return isolationWorks(findings) ? EXIT_SUCCESS : EXIT_FAILURE;
}

const char* variable(const char* name) {
  const char* value = ::getenv(name);
  return value != nullptr ? value : "";
}

// Every place that settlePrivilege may choose.
std::vector<MadeDirectories> possiblePlaces(const PrivilegePlan& plan) {
  std::vector<MadeDirectories> places;
  if (plan.stateDirectory) {
    places.emplace_back(*plan.stateDirectory);
    return places;
  }
  for (const bool reachable : {true, false}) {
    const auto choice = chooseStateDirectory(
        {variable("XDG_STATE_HOME"), variable("HOME"), [reachable](const std::string&) { return reachable; }});
    if (choice) {
      places.emplace_back(choice->path);
    }
  }
  return places;
}

}  // namespace

int runDoctor(const DoctorPlan& plan) {
  std::signal(SIGPIPE, SIG_IGN);
  ::umask(022);
  setLogLevel(LogLevel::kError);
  const std::vector<MadeDirectories> places = possiblePlaces(plan.privilege);
  // A child does it all, and this process keeps the rights to remove what only root could make. That root stays beside
  // a guest so is no danger: the guest is a shell that does nothing.
  const pid_t child = ::fork();
  if (child == 0) {
    return examine(plan);
  }
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  for (const MadeDirectories& place : places) {
    place.removeEmpty();
  }
  if (child < 0 || !WIFEXITED(status)) {
    std::cerr << "stitchkit-sandbox: the examination was cut short\n";
    return EXIT_FAILURE;
  }
  return WEXITSTATUS(status);
}

}  // namespace stitchkit
