// A command, and what the launch helper reads of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/launch/launch_helper/launch_protocol.h"
#include "backend/launch/launch_profile.h"

namespace stitchkit {

/// One command of a guest. No string holds NUL: the caller has refused that (PROTOCOL.md, 5).
struct Command {
  std::string executable;  ///< looked up in the guest's PATH when it holds no '/'
  std::vector<std::string> arguments;
  std::string workingDirectory;  ///< canonical: "/workspace" or below
  /// What the command declares. PATH, HOME and PWD are added unless declared.
  std::vector<std::pair<std::string, std::string>> environment;
  std::chrono::milliseconds timeout{};             ///< from start() on
  std::uint64_t maxOutputBytes = 0;                ///< stdout and stderr together
  std::optional<std::uint64_t> maxFileBytes = {};  ///< RLIMIT_FSIZE, soft and hard
  std::optional<std::uint64_t> maxOpenFiles = {};  ///< RLIMIT_NOFILE, soft and hard
  std::optional<std::uint64_t> maxProcesses = {};  ///< RLIMIT_NPROC: processes and threads of this command
};

/// A guest's whole environment, "NAME=value": PATH, HOME, what the command declares, PWD. A declared PATH or HOME
/// stands in its place; of a name declared twice the last value counts, where the first stood.
std::vector<std::string> guestEnvironment(const Command& command);

/// The payload of kLaunchRun. `softOpenFiles` and `entersGroup` (LAUNCH_GROUP_FD is there) are the profile's.
std::string commandPayload(const Command& command, std::uint64_t softOpenFiles, bool entersGroup = false);

/// The payload of kLaunchOpen and kLaunchRemove.
std::string pathPayload(const LaunchPathHeader& header, std::string_view path);

}  // namespace stitchkit
