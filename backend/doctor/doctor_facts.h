// All that a diagnosis is made from. Facts only: what was seen, what was tried and how it went.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "backend/diagnosis/cause.h"
#include "backend/diagnosis/machine_facts.h"
#include "backend/diagnosis/program_facts.h"
#include "rpc/base/error.h"

namespace stitchkit {

/// As which user the sidecar would run, and whether it got that far.
struct UserFacts {
  bool startedByRoot = false;
  bool staysRoot = false;
  std::string name;            ///< "nobody (65534)"
  std::optional<Error> error;  ///< root could not be given up, or the state directory not be handed over
};

/// Of what this process was started with, as far as it is too little for a launch.
struct LimitFacts {
  std::optional<Cause> cause;
  std::string detail;
};

struct BubblewrapFacts {
  std::string path;
  ProgramFacts file;
  bool asked = false;                         ///< `--version` was run
  std::string answer;                         ///< the first line that came
  std::optional<std::array<int, 3>> version;  ///< out of it
};

struct KernelFacts {
  std::string release;
  std::vector<std::string> missing;  ///< system calls that a sandbox needs
  bool openat2 = true;               ///< done without where it is missing
  bool seccomp = true;               ///< a filter can be set
};

/// A user namespace, and the others in it, made by this program itself: for where bubblewrap cannot say.
struct NamespaceTrial {
  const char* step = "";  ///< what failed: "user namespace", "uid map", "namespaces"
  int error = 0;          ///< its errno; 0: all went well
};

struct StateDirectoryFacts {
  std::string path;
  int error = 0;               ///< errno of the first that failed: 0, EACCES, ENOSPC, ...
  std::string failed;          ///< what that was
  std::optional<Cause> cause;  ///< of that, where it is known
  std::string unsearchable;    ///< the folder above it that the user may not search; "" for none
  std::vector<std::string> lacking;
  bool noexec = false;
  std::uint64_t freeBytes = 0;  ///< for this user
};

/// Which ceilings of a session a control group can hold.
struct CgroupFacts {
  bool memory = false;
  bool processes = false;
  bool cpu = false;
  std::string how;  ///< "version 2"; why a controller is missing
};

/// A session with a guest, made and removed as the sidecar does it.
struct LaunchTrial {
  std::optional<Error> error;
  double milliseconds = 0;
};

struct DoctorFacts {
  LimitFacts limits;  ///< with a cause: nothing else was tried
  UserFacts user;
  MachineFacts machine;
  BubblewrapFacts bubblewrap;
  KernelFacts kernel;
  CgroupFacts cgroups;
  std::optional<StateDirectoryFacts> stateDirectory;  ///< absent: not tried
  std::optional<LaunchTrial> launch;                  ///< likewise
  std::optional<NamespaceTrial> namespaces;           ///< likewise
};

}  // namespace stitchkit
