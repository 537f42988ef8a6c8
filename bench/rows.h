// The rows of the table, one function each. What they measure and their targets: README.md, Figures.
#pragma once

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

/// What the rows share. `session` names a live handle of `sidecar`.
struct Setting {
  Effort effort;
  std::string program;                   ///< the sidecar's executable
  std::filesystem::path home;            ///< writable, removed at the end
  std::filesystem::path stateDirectory;  ///< of `sidecar`
  Sidecar& sidecar;
  std::string session;
  DirectLaunch& direct;
  std::string nodeProgram;  ///< "": there is no Node.js here
  NodeScript* node;         ///< node_launcher.mjs; nullptr without Node.js
};

/// Makes a template and a session of it under deny-all; the handle.
std::string openSession(Sidecar& sidecar);

/// Where a session's workspace lies below a state directory (PROTOCOL.md, 4).
std::filesystem::path workspaceOf(const std::filesystem::path& stateDirectory, const std::string& sessionId);

Row residentRow(Setting& setting);
Row startRow(Setting& setting);
Row runRow(Setting& setting);
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
Row soakRow(Setting& setting);

}  // namespace stitchkit::bench
