// The rows of the table, one function each. What they measure and their targets: README.md, Figures.
#pragma once

#include "backend/cgroups/cgroup_delegation.h"
#include "bench/direct_launch.h"
#include "bench/node_script.h"
#include "bench/sidecar.h"
#include "bench/table.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace stitchkit::bench {

/// How much to measure.
struct Effort {
  int rounds = 300;
  int soakCommands = 10000;
  int soakFileOperations = 100000;
};

/// What the rows share. `session` names a live handle of `sidecar`, `coldSession` one of `cold`.
struct Setting {
  Effort effort;
  std::string program;                   ///< the sidecar's executable
  std::filesystem::path home;            ///< writable, removed at the end
  std::filesystem::path stateDirectory;  ///< of `sidecar`
  Sidecar& sidecar;
  std::string session;
  Sidecar& cold;  ///< --warm 0: each command launches for itself, and nothing is launched beside what is measured
  std::string coldSession;
  DirectLaunch& direct;
  std::string nodeProgram;  ///< "": there is no Node.js here
  NodeScript* node;         ///< node_launcher.mjs; nullptr without Node.js
  const CgroupDelegation& cgroups;
};

/// Makes a template and a session of it under deny-all; the handle.
std::string openSession(Sidecar& sidecar);

/// Where a session's workspace lies below a state directory (PROTOCOL.md, 4).
std::filesystem::path workspaceOf(const std::filesystem::path& stateDirectory, const std::string& sessionId);

Row residentRow(Setting& setting);
Row startRow(Setting& setting);
/// A command that finds no launch ready.
Row runRow(Setting& setting);
/// That one, and commands that find one ready, in a sidecar of their own; what waiting launches cost.
std::vector<Row> warmRows(Setting& setting);
/// What the filter of system calls and the limits of a session add to such a command.
Row limitsRow(Setting& setting);
Row readRow(Setting& setting);
Row writeRow(Setting& setting);
/// Writing and reading, over pipes and over sockets.
std::vector<Row> mebibyteRows(Setting& setting);
Row pipelineRow(Setting& setting);
Row templateRow(Setting& setting);
/// The coding tools, in a session of their own.
std::vector<Row> toolRows(Setting& setting);
/// The gateway, in a sidecar of its own.
std::vector<Row> gatewayRows(Setting& setting);
/// The JavaScript client, in a sidecar of its own; without figures where there is no Node.js.
std::vector<Row> clientRows(Setting& setting);
/// A command beside a session that takes all it can get, in a sidecar of their own.
std::vector<Row> hogRows(Setting& setting);
Row soakRow(Setting& setting);

}  // namespace stitchkit::bench
