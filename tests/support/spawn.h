// Starts a program with exactly the descriptors, user and environment that a test names.
#pragma once

#include "rpc/base/unique_fd.h"

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stitchkit::testing {

struct SpawnOptions {
  std::vector<std::string> argv;                 ///< the first is the path of the program
  std::vector<std::string> environment;          ///< "NAME=value", all of it
  std::vector<std::pair<int, int>> descriptors;  ///< {source here, number there}
  std::optional<uid_t> user;                     ///< becomes it before exec
  bool controllingTerminal = false;  ///< its descriptor 0 becomes its controlling terminal, in a new session
  std::string workingDirectory = "/";
};

/// How a process ended.
struct ExitStatus {
  int code = -1;   ///< of exit; -1 after a signal
  int signal = 0;  ///< that killed it; 0 for none
};

/// Starts it; signal mask and dispositions are the defaults there. Everything else of this process's descriptors is
/// closed. Throws when the program could not be executed.
pid_t spawnProgram(const SpawnOptions& options);

/// Waits for a child; nullopt when it is still alive after `within`.
std::optional<ExitStatus> waitForChild(pid_t child, std::chrono::milliseconds within);

/// A program run to its end with the outputs caught (both through one pipe); stdin is /dev/null.
struct ProgramResult {
  ExitStatus status;
  std::string output;
};
ProgramResult runProgram(std::vector<std::string> argv, std::optional<uid_t> user = std::nullopt,
                         std::vector<std::string> environment = {"PATH=/usr/bin:/bin"});

}  // namespace stitchkit::testing
