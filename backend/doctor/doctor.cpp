#include "backend/doctor/doctor.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <tuple>
#include <utility>
#include <vector>

#include "backend/doctor/bubblewrap_facts.h"
#include "backend/doctor/diagnose.h"
#include "backend/doctor/kernel_facts.h"
#include "backend/doctor/leftovers.h"
#include "backend/doctor/limit_facts.h"
#include "backend/doctor/namespace_trial.h"
#include "backend/doctor/report.h"
#include "backend/doctor/state_directory_facts.h"
#include "backend/doctor/trial_launch.h"
#include "backend/privilege/default_state_directory.h"
#include "rpc/base/log.h"
#include "rpc/base/open_files_limit.h"
#include "rpc/base/standard_streams.h"

namespace stitchkit {
namespace {

std::string userName() {
  const uid_t uid = ::geteuid();
  // cppcheck-suppress getpwuidCalled ; nobody else asks for users there
  const passwd* entry = ::getpwuid(uid);
  const std::string number = std::to_string(uid);
  return entry != nullptr ? std::string(entry->pw_name) + " (" + number + ")" : number;
}

CgroupFacts factsOf(const CgroupDelegation& delegation) {
  CgroupFacts facts;
  facts.memory = delegation.base(CgroupController::kMemory).has_value();
  facts.processes = delegation.base(CgroupController::kProcesses).has_value();
  facts.cpu = delegation.base(CgroupController::kCpu).has_value();
  facts.how = delegation.note;
  if (facts.memory && facts.processes && facts.cpu) {
    facts.how = "version " + std::to_string(delegation.base(CgroupController::kMemory)->version);
  }
  return facts;
}

// What limits a launch first: without that, other facts are not what they seem. Then facts that need no rights: giving
// up root may fail halfway.
void gatherFacts(DoctorPlan plan, Leftovers& leftovers, DoctorFacts& facts) {
  facts.user.startedByRoot = ::geteuid() == 0;
  facts.machine = readMachineFacts();
  facts.kernel = readKernelFacts();
  plan.privilege.beforeDrop = [&leftovers] { leftovers.guard(); };
  Result<Privilege> privilege = settlePrivilege(plan.privilege);
  if (privilege) {
    privilege->steward.dismiss();
    facts.limits = tryProcesses();
    if (facts.limits.cause) {
      return;
    }
  }
  facts.bubblewrap = readBubblewrapFacts(plan.bubblewrap, privilege.has_value());
  facts.namespaces = tryNamespaces();
  if (!privilege) {
    facts.user.error = std::move(privilege).error();
    return;
  }
  facts.user.staysRoot = privilege->stayedRoot;
  facts.user.name = userName();
  facts.cgroups = factsOf(*privilege->cgroups);
  leftovers.guardTrials(privilege->stateDirectory);
  facts.stateDirectory = tryStateDirectory(privilege->stateDirectory);
  if (facts.stateDirectory->error == 0) {
    facts.launch = tryLaunch({privilege->stateDirectory, plan.bubblewrap, privilege->stayedRoot, privilege->cgroups});
  }
}

const char* variable(const char* name) {
  const char* value = ::getenv(name);
  return value != nullptr ? value : "";
}

// What lies deeper comes first, so that it is out of the way.
void addStatePlace(std::vector<std::string>& places, const std::string& directory) {
  places.push_back(directory + "/support");
  places.push_back(directory);
}

// Every directory that settlePrivilege and the trials may make.
std::vector<std::string> possiblePlaces(const PrivilegePlan& plan) {
  CgroupRequest cgroups = plan.cgroups;
  if (::geteuid() == 0 && !plan.allowRoot) {
    if (const auto user = resolveUser(plan.user)) {
      cgroups.owner = CgroupOwner{user->uid, user->gid};
    }
  }
  std::vector<std::string> places = delegatedDirectories(cgroups);
  if (plan.stateDirectory) {
    addStatePlace(places, *plan.stateDirectory);
    return places;
  }
  for (const bool reachable : {true, false}) {
    const auto choice = chooseStateDirectory(
        {variable("XDG_STATE_HOME"), variable("HOME"), [reachable](const std::string&) { return reachable; }});
    if (choice) {
      addStatePlace(places, choice->path);
    }
  }
  return places;
}

}  // namespace

int runDoctor(const DoctorPlan& plan) {
  std::ignore = std::signal(SIGPIPE, SIG_IGN);
  std::ignore = std::signal(SIGXFSZ, SIG_IGN);  // told as a failure to write
  ::umask(022);
  setLogLevel(LogLevel::kError);
  std::ignore = raiseOpenFilesLimit();  // as `serve` does; whether it is enough is tried
  DoctorFacts facts;
  try {
    facts.limits = tryOpenFiles();
    if (!facts.limits.cause) {
      Leftovers leftovers(possiblePlaces(plan.privilege));
      gatherFacts(plan, leftovers, facts);
    }
  } catch (const std::exception&) {
    facts.launch = LaunchTrial{thrownError(), 0};
  }
  const std::vector<Finding> findings = diagnose(facts);
  const bool told = writeStandardOutput(plan.json ? jsonReport(findings) : textReport(findings));
  return told && isolationWorks(findings) ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace stitchkit
