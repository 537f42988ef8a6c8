#include "backend/doctor/diagnose.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <initializer_list>

#include "backend/diagnosis/set_up_cause.h"

namespace stitchkit {
namespace {

constexpr std::uint64_t kLittleRoomBytes = 64UL * 1024 * 1024;

std::string inBrackets(const std::string& detail) {
  return detail.empty() ? "" : " (" + detail + ")";
}

std::string joined(const std::vector<std::string>& words, std::size_t most = 6) {
  std::string text;
  for (std::size_t i = 0; i < std::min(words.size(), most); ++i) {
    text += (i == 0 ? "" : ", ") + words[i];
  }
  return words.size() > most ? text + ", ..." : text;
}

Finding fine(const char* name, std::string message) {
  return {name, FindingStatus::kOk, "", std::move(message), ""};
}

Finding problem(const char* name, Cause cause, const std::string& detail = "",
                FindingStatus status = FindingStatus::kFailed) {
  const CauseText& text = textOf(cause);
  return {name, status, text.name, text.message + inBrackets(detail), text.hint};
}

Finding problem(const char* name, const Error& error) {
  return {name, FindingStatus::kFailed, error.reason.empty() ? textOf(Cause::kSetUpFailed).name : error.reason,
          error.message + inBrackets(error.privateDetail), error.hint};
}

bool worked(const DoctorFacts& facts) {
  return facts.launch && !facts.launch->error;
}

// The cause of the launch's failure when it is one of those.
std::optional<Cause> launchCause(const DoctorFacts& facts, Cause first, Cause last) {
  if (!facts.launch || !facts.launch->error) {
    return std::nullopt;
  }
  for (auto number = static_cast<std::size_t>(first); number <= static_cast<std::size_t>(last); ++number) {
    const auto cause = static_cast<Cause>(number);
    if (facts.launch->error->reason == textOf(cause).name) {
      return cause;
    }
  }
  return std::nullopt;
}

// Errors of giving up root are about the state directory or about the user.
bool isAboutDirectory(const Error& error) {
  return error.reason.starts_with("state-directory-");
}

Finding checkLimits(const DoctorFacts& facts) {
  constexpr const char* kName = "limits";
  if (facts.limits.cause) {
    return problem(kName, *facts.limits.cause, facts.limits.detail);
  }
  if (const auto cause = launchCause(facts, Cause::kOpenFilesLimited, Cause::kProcessesLimited)) {
    return problem(kName, *cause);
  }
  return fine(kName, "files and processes enough for a launch");
}

Finding checkUser(const DoctorFacts& facts) {
  const UserFacts& user = facts.user;
  if (user.error && !isAboutDirectory(*user.error)) {
    return problem("user", *user.error);
  }
  if (user.staysRoot) {
    return problem("user", Cause::kStaysRoot, "", FindingStatus::kWarning);
  }
  return fine("user", std::string(user.startedByRoot ? "started by root, runs as " : "runs as ") + user.name);
}

Finding checkBubblewrap(const DoctorFacts& facts) {
  constexpr const char* kName = "bubblewrap";
  const BubblewrapFacts& program = facts.bubblewrap;
  if (worked(facts)) {
    return fine(kName, program.answer + inBrackets(program.path));
  }
  if (program.file.error != 0) {
    return problem(kName, causeOfSpawn(program.file.error, program.file), program.path);
  }
  if (program.asked && !program.version) {
    return problem(kName, Cause::kBubblewrapUnknown,
                   program.path + (program.answer.empty() ? " does not tell its version" : ": " + program.answer));
  }
  if (program.version && *program.version < kOldestBubblewrap) {
    return problem(kName, Cause::kBubblewrapTooOld, program.path + ": " + program.answer);
  }
  if (const auto cause = launchCause(facts, Cause::kBubblewrapMissing, Cause::kBubblewrapUnknown)) {
    return problem(kName, *cause, program.path);
  }
  if (program.file.setuid || program.file.capabilities) {
    return problem(kName, program.file.setuid ? Cause::kBubblewrapSetuid : Cause::kBubblewrapCapabilities,
                   program.path);
  }
  return fine(kName, (program.asked ? program.answer : "is there") + inBrackets(program.path));
}

Finding checkKernel(const DoctorFacts& facts) {
  constexpr const char* kName = "kernel";
  const KernelFacts& kernel = facts.kernel;
  if (!worked(facts) && !kernel.missing.empty()) {
    return problem(kName, Cause::kKernelTooOld, "Linux " + kernel.release + " without " + joined(kernel.missing));
  }
  if (!worked(facts) && !kernel.seccomp) {
    return problem(kName, Cause::kSeccompUnavailable, "Linux " + kernel.release);
  }
  if (const auto cause = launchCause(facts, Cause::kKernelTooOld, Cause::kSeccompUnavailable)) {
    return problem(kName, *cause, "Linux " + kernel.release);
  }
  if (!kernel.openat2) {
    return problem(kName, Cause::kKernelTooOld,
                   "Linux " + kernel.release + " without openat2: files are opened in more steps, slower",
                   FindingStatus::kWarning);
  }
  return fine(kName, "Linux " + kernel.release + " has what is needed");
}

std::string whereNamespaces(const MachineFacts& machine, Cause cause) {
  switch (cause) {
    case Cause::kUserNamespacesLimited:
      return machine.limitsAtZero.empty() ? "by an outer sandbox, or all that are allowed are there"
                                          : joined(machine.limitsAtZero) + " is 0";
    case Cause::kUserNamespacesDisabled:
      return machine.userNamespaces ? "kernel.unprivileged_userns_clone is 0" : "the kernel has none";
    case Cause::kContainerSeccomp:
    case Cause::kMountsRefused:
      return machine.container;
    default:
      return "";
  }
}

Cause causeOfTrial(const NamespaceTrial& trial, const MachineFacts& machine) {
  switch (trial.error) {
    case ENOSPC:
    case EUSERS:
      return Cause::kUserNamespacesLimited;
    case EAGAIN:
      return Cause::kProcessesLimited;
    case EMFILE:
    case ENFILE:
      return Cause::kOpenFilesLimited;
    case EINVAL:
    case ENOSYS:
      return Cause::kUserNamespacesDisabled;
    default:
      return causeOfRefusal(machine);
  }
}

Finding checkNamespaces(const DoctorFacts& facts) {
  constexpr const char* kName = "namespaces";
  if (worked(facts)) {
    return fine(kName, "user, mount, PID, IPC, UTS, cgroup and network namespaces can be made");
  }
  if (const auto cause = launchCause(facts, Cause::kUserNamespacesDisabled, Cause::kMountsRefused)) {
    return problem(kName, *cause, whereNamespaces(facts.machine, *cause));
  }
  if (const auto cause = forbiddenNamespaces(facts.machine); cause && !facts.user.staysRoot) {
    return problem(kName, *cause, whereNamespaces(facts.machine, *cause));
  }
  if (!facts.namespaces) {
    return fine(kName, "nothing on this machine forbids them");
  }
  if (facts.namespaces->error == 0) {
    return fine(kName, "user namespaces, and the others in them, can be made");
  }
  const Cause cause = causeOfTrial(*facts.namespaces, facts.machine);
  // To AppArmor it matters which program asks, and bubblewrap may have a profile.
  const bool known = cause != Cause::kAppArmorRestrictsUserNamespaces;
  return problem(kName, cause,
                 known ? std::string(facts.namespaces->step) + ": " + errnoName(facts.namespaces->error)
                       : "unless bubblewrap has a profile",
                 known ? FindingStatus::kFailed : FindingStatus::kWarning);
}

Finding checkProc(const DoctorFacts& facts) {
  constexpr const char* kName = "proc";
  if (worked(facts)) {
    return fine(kName, "a fresh /proc can be mounted");
  }
  const std::string covered = joined(facts.machine.coveredProcEntries);
  if (launchCause(facts, Cause::kProcMasked, Cause::kProcMasked) || !covered.empty()) {
    return problem(kName, Cause::kProcMasked, covered.empty() ? "" : "covered: " + covered);
  }
  return fine(kName, "nothing covers a part of /proc");
}

Finding checkStateDirectory(const DoctorFacts& facts) {
  constexpr const char* kName = "state-directory";
  if (facts.user.error && isAboutDirectory(*facts.user.error)) {
    return problem(kName, *facts.user.error);
  }
  if (!facts.stateDirectory) {
    return {kName, FindingStatus::kWarning, "not-tried", "not tried, for the sidecar would not start", ""};
  }
  const StateDirectoryFacts& state = *facts.stateDirectory;
  if (state.error != 0) {
    const std::string where = state.unsearchable.empty() ? state.path : state.unsearchable;
    return problem(kName, state.cause.value_or(Cause::kStateDirectoryNotWritable),
                   where + ": " + state.failed + ": " + errnoName(state.error));
  }
  if (!state.lacking.empty()) {
    return problem(kName, Cause::kStateDirectoryFileSystem, state.path + ": no " + joined(state.lacking));
  }
  if (!worked(facts) && state.noexec) {
    return problem(kName, Cause::kStateDirectoryNoexec, state.path + " is mounted noexec");
  }
  if (const auto cause = launchCause(facts, Cause::kStateDirectoryNotSearchable, Cause::kStateDirectoryFileSystem)) {
    return problem(kName, *cause, state.path);
  }
  const std::string room = std::to_string(state.freeBytes / (1024UL * 1024)) + " MiB free";
  if (state.freeBytes < kLittleRoomBytes) {
    return problem(kName, Cause::kStateDirectoryFull, state.path + ", nearly: " + room, FindingStatus::kWarning);
  }
  return fine(kName, state.path + inBrackets(room));
}

Finding checkCgroups(const DoctorFacts& facts) {
  constexpr const char* kName = "cgroups";
  const CgroupFacts& cgroups = facts.cgroups;
  std::vector<std::string> missing;
  for (const auto& [there, name] : std::initializer_list<std::pair<bool, const char*>>{
           {cgroups.memory, "memoryBytes"}, {cgroups.processes, "maxProcesses"}, {cgroups.cpu, "cpus"}}) {
    if (!there) {
      missing.emplace_back(name);
    }
  }
  if (missing.empty()) {
    return fine(kName, "memory, processes and CPU of a session can be limited" + inBrackets(cgroups.how));
  }
  const std::string why = cgroups.how.empty() ? "" : "; " + cgroups.how;
  return problem(kName, Cause::kNoCgroup, "cannot be enforced: " + joined(missing) + why, FindingStatus::kWarning);
}

Finding checkLaunch(const DoctorFacts& facts) {
  constexpr const char* kName = "launch";
  if (!facts.launch) {
    return {kName, FindingStatus::kFailed, "not-tried", "not tried: see the checks that failed", ""};
  }
  if (facts.launch->error) {
    return problem(kName, *facts.launch->error);
  }
  return fine(kName, "a session was made, its guest ran a program and is gone (" +
                         std::to_string(std::lround(facts.launch->milliseconds)) + " ms in all)");
}

}  // namespace

std::vector<Finding> diagnose(const DoctorFacts& facts) {
  if (facts.limits.cause) {
    // What else would be seen then, would be seen for want of files and processes.
    std::vector<Finding> findings{checkLimits(facts)};
    for (const char* name : {"user", "bubblewrap", "kernel", "namespaces", "proc", "state-directory", "cgroups"}) {
      findings.push_back({name, FindingStatus::kWarning, "not-tried", "not tried: see limits", ""});
    }
    findings.push_back(checkLaunch(facts));
    return findings;
  }
  return {checkLimits(facts),         checkUser(facts),       checkBubblewrap(facts),
          checkKernel(facts),         checkNamespaces(facts), checkProc(facts),
          checkStateDirectory(facts), checkCgroups(facts),    checkLaunch(facts)};
}

}  // namespace stitchkit
