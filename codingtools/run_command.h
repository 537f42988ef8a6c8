// The tool `run_command` (PROTOCOL.md, section 7), but for the running itself.
#pragma once

#include "codingtools/tool_context.h"
#include "codingtools/tool_session.h"
#include "rpc/base/error.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stitchkit {

/// What a toolset may run, as `coding.create` sets it.
struct ShellRules {
  std::map<std::string, std::string> executables;  ///< absolute paths by their aliases
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> requiredRestrictions;
};

struct RunCommandInput {
  std::string executable;  ///< an alias
  std::vector<std::string> arguments;
  std::string directory;
};

struct KeptOutput {
  std::string reference;
  std::size_t bytes = 0;
  bool truncated = false;
  std::size_t headBytes = 0;
  std::size_t tailBytes = 0;
  std::size_t omittedBytes = 0;
};

struct RunCommandOutput {
  std::string executable;
  std::optional<int> exitCode;  ///< none when it was killed, or never began
  const char* signal = nullptr;
  std::string standardOutput;
  std::string standardError;
  const char* outcome = "";
  std::string resource;  ///< ToolCommandEnd::resource
  std::optional<KeptOutput> artifact;
};

/// From the input to what may run: checked against the rules and the limits, and allowed by the host. VALIDATION_ERROR
/// for an alias that was not declared; kBadRequest for too many or malformed arguments.
Result<ToolCommand> prepareCommand(const ToolContext& context, const ShellRules& rules, const RunCommandInput& input);

/// SANDBOX_INSUFFICIENT with `details.missing` and `details.grade`.
Result<void> checkRestrictions(const ShellRules& rules, const ToolGrade& grade);

/// Whether an output is short enough to be answered as it is: then reportCommand neither blocks nor fails.
bool fitsWhole(const ToolContext& context, const ToolCommandEnd& end);

/// From the end of a command to the answer. Longer output is kept as an artifact; when that fails the error says in
/// `details` how the command ended (`outcome`, `exitCode`, `stdout`, `stderr`). kCancelled when `context.stop` ended
/// it.
Result<RunCommandOutput> reportCommand(const ToolContext& context, const RunCommandInput& input,
                                       const ToolCommandEnd& end);

/// The answer for one that was cancelled while its long output was being kept: that is lost but for its ends.
RunCommandOutput unkeptCommand(const ToolContext& context, const RunCommandInput& input, const ToolCommandEnd& end);

/// The answer for one that was cancelled before it began.
RunCommandOutput cancelledCommand(const RunCommandInput& input);

/// The error of a command that could not begin, in the words of the tools.
Error commandError(Error error, const RunCommandInput& input);

}  // namespace stitchkit
