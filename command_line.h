// The command line of `stitchkit-sandbox`.
#pragma once

#include <cstddef>
#include <string>
#include <variant>

#include "backend/doctor/doctor.h"
#include "backend/gc/gc.h"
#include "backend/privilege/privilege.h"
#include "codingtools/durability.h"
#include "gateway/gateway.h"
#include "rpc/base/log.h"
#include "rpc/frame_decoder.h"

namespace stitchkit {

/// `serve`, the default.
struct ServeCommand {
  PrivilegePlan privilege;
  std::string name;
  std::string bubblewrap;
  int maxConcurrentCommands = 0;
  int warmLaunches = 0;
  GatewayOptions gateway;
  Framing framing = Framing::kAuto;
  bool serial = false;
  std::size_t maxMessageBytes = 0;
  Durability durability;
  LogLevel logLevel = LogLevel::kInfo;
  LogFormat logFormat = LogFormat::kText;
};

/// What the command line asks for.
struct CommandLineResult {
  std::variant<std::monostate, ServeCommand, DoctorPlan, GcPlan> command;  ///< to be run; with std::monostate:
  int exitCode = 0;
  std::string standardOutput;  ///< help or version
  std::string standardError;   ///< what is wrong
};

CommandLineResult parseCommandLine(int argc, const char* const* argv);

}  // namespace stitchkit
