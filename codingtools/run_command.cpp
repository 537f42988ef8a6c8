#include "codingtools/run_command.h"

#include "codingtools/character_cut.h"
#include "codingtools/shell_preview.h"
#include "codingtools/tool_path.h"
#include "rpc/base/limits.h"
#include "rpc/base/utf8.h"

#include <boost/json/array.hpp>

#include <algorithm>
#include <chrono>

namespace stitchkit {

namespace json = boost::json;

namespace {

constexpr std::string_view kOutputTitle = "--- stdout ---\n";
constexpr std::string_view kErrorTitle = "\n--- stderr ---\n";

Error undeclared(const ShellRules& rules) {
  std::string message = "must be one of the declared programs:";
  for (const auto& [alias, path] : rules.executables) {
    message += " " + alias;
  }
  std::vector<ValidationIssue> issues{{"input.executable", message}};
  return Error(ErrorKind::kValidation, "input.executable " + message)
      .withDetail("issues", std::move(issues))
      .withHint("Programs are named by their alias, without a path; there is no shell in between.");
}

Error tooManyArguments(const char* limitName, std::size_t given, std::size_t limit) {
  return Error(ErrorKind::kBadRequest, "The arguments are too many or too long")
      .withDetail("given", static_cast<std::int64_t>(given))
      .withDetail(limitName, static_cast<std::int64_t>(limit))
      .withHint("Pass less, or write it to a file and name that.");
}

Result<void> checkArguments(const ToolLimits& limits, const std::vector<std::string>& arguments) {
  if (arguments.size() > limits.maxShellArguments) {
    return tooManyArguments("maxShellArguments", arguments.size(), limits.maxShellArguments);
  }
  std::size_t bytes = 0;
  for (const std::string& argument : arguments) {
    bytes += argument.size();
    if (argument.find('\0') != std::string::npos) {
      return Error(ErrorKind::kBadRequest, "An argument holds a NUL character")
          .withHint("No argument of a program can hold one; write it to a file.");
    }
  }
  if (bytes > limits.maxShellArgumentBytes) {
    return tooManyArguments("maxShellArgumentBytes", bytes, limits.maxShellArgumentBytes);
  }
  return {};
}

json::object requestFor(const RunCommandInput& input) {
  json::array arguments;
  for (const std::string& argument : input.arguments) {
    arguments.emplace_back(argument);
  }
  return {{"operation", "shell"},
          {"executable", input.executable},
          {"args", std::move(arguments)},
          {"cwd", input.directory}};
}

std::uint64_t outputBudget(const ToolContext& context) {
  const std::size_t titles = kOutputTitle.size() + kErrorTitle.size();
  const std::size_t kept = context.artifacts != nullptr ? context.limits.maxArtifactBytes : 0;
  return std::max(context.limits.maxShellOutputBytes, kept - std::min(kept, titles));
}

const char* outcomeName(ToolCommandEnd::Outcome outcome) {
  switch (outcome) {
    case ToolCommandEnd::Outcome::kExited:
      break;
    case ToolCommandEnd::Outcome::kTimeout:
      return "timeout";
    case ToolCommandEnd::Outcome::kOutputLimit:
      return "output-limit";
    case ToolCommandEnd::Outcome::kCancelled:
      return "cancelled";
  }
  return "exited";
}

RunCommandOutput outputFor(const RunCommandInput& input, const ToolCommandEnd& end) {
  RunCommandOutput output;
  output.executable = input.executable;
  output.outcome = outcomeName(end.outcome);
  output.resource = end.resource;
  if (end.outcome == ToolCommandEnd::Outcome::kExited) {
    output.exitCode = end.exitCode;
  } else {
    output.signal = "SIGKILL";
  }
  return output;
}

/// Without the character that the end of the output has cut off.
std::string_view withoutCutCharacter(std::string_view bytes) {
  for (std::size_t cut = 1; cut <= std::min(kCharacterReach, bytes.size()); ++cut) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - cut]);
    if (byte < 0x80 || byte >= 0xC0) {
      const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
      return length > cut ? bytes.substr(0, bytes.size() - cut) : bytes;
    }
  }
  return bytes;
}

std::string wholeText(const std::string& bytes, ToolCommandEnd::Outcome outcome) {
  return toUtf8(outcome == ToolCommandEnd::Outcome::kOutputLimit ? withoutCutCharacter(bytes) : bytes);
}

std::string artifactOf(const ToolCommandEnd& end, std::size_t maxBytes) {
  std::string content;
  content.reserve(kOutputTitle.size() + end.standardOutput.size() + kErrorTitle.size() + end.standardError.size());
  content.append(kOutputTitle).append(end.standardOutput).append(kErrorTitle).append(end.standardError);
  content.resize(std::min(content.size(), maxBytes));
  return content;
}

Error notKept(Error error, const RunCommandOutput& output) {
  Error told = std::move(error).withDetail("outcome", output.outcome);
  if (output.exitCode) {
    told.details.emplace_back("exitCode", std::int64_t{*output.exitCode});
  }
  told.details.emplace_back("stdout", excerpt(output.standardOutput, limits::kLimitedOutputBytes));
  told.details.emplace_back("stderr", excerpt(output.standardError, limits::kLimitedOutputBytes));
  return std::move(told).withHint("The command has run; only its long output could not be kept.");
}

}  // namespace

Result<ToolCommand> prepareCommand(const ToolContext& context, const ShellRules& rules, const RunCommandInput& input) {
  if (Result<void> any = context.guard.checkAny(); !any) {
    return std::move(any).error();
  }
  const auto program = rules.executables.find(input.executable);
  if (program == rules.executables.end()) {
    return undeclared(rules);
  }
  if (Result<void> fits = checkArguments(context.limits, input.arguments); !fits) {
    return std::move(fits).error();
  }
  const Result<WorkspacePath> path = parseToolPath(input.directory, RootPath::kAllowed, context.limits.maxPathBytes);
  if (!path) {
    return path.error();
  }
  const Result<FileIdentity> directory = path->isRoot() ? FileIdentity() : context.files.identifyDirectory(*path);
  if (!directory) {
    return directory.error();
  }
  if (Result<void> allowed = context.guard.authorize(requestFor(input), context.stop); !allowed) {
    return std::move(allowed).error();
  }
  if (!path->isRoot()) {
    if (const Result<UniqueFd> same = context.files.openSameDirectory(*path, *directory); !same) {
      return same.error();
    }
  }
  ToolCommand command;
  command.executable = program->second;
  command.arguments = input.arguments;
  command.workingDirectory = path->canonical();
  command.environment = rules.environment;
  command.timeout = std::chrono::milliseconds(context.limits.shellTimeoutMs);
  command.maxOutputBytes = outputBudget(context);
  return command;
}

Result<void> checkRestrictions(const ShellRules& rules, const ToolGrade& grade) {
  std::vector<std::string> missing;
  for (const std::string& required : rules.requiredRestrictions) {
    if (std::find(grade.restrictions.begin(), grade.restrictions.end(), required) == grade.restrictions.end()) {
      missing.push_back(required);
    }
  }
  if (missing.empty()) {
    return {};
  }
  return Error(ErrorKind::kInsufficient, "The sandbox does not enforce all that is required of it")
      .withDetail("missing", std::move(missing))
      .withDetail("grade", grade.grade)
      .withHint("Set another network policy, or require less with coding.create.");
}

bool fitsWhole(const ToolContext& context, const ToolCommandEnd& end) {
  return context.artifacts == nullptr ||
         end.standardOutput.size() + end.standardError.size() <= context.limits.maxShellOutputBytes;
}

Result<RunCommandOutput> reportCommand(const ToolContext& context, const RunCommandInput& input,
                                       const ToolCommandEnd& end) {
  RunCommandOutput output = outputFor(input, end);
  if (fitsWhole(context, end)) {
    output.standardOutput = wholeText(end.standardOutput, end.outcome);
    output.standardError = wholeText(end.standardError, end.outcome);
    return output;
  }
  ShellPreview preview = previewOf(end.standardOutput, end.standardError, context.limits.maxShellOutputBytes);
  output.standardOutput = std::move(preview.standardOutput);
  output.standardError = std::move(preview.standardError);
  const std::string content = artifactOf(end, context.limits.maxArtifactBytes);
  Result<std::string> reference = context.artifacts->write(content, requestFor(input), context.stop);
  if (!reference && reference.error().kind == ErrorKind::kCancelled) {
    return reference.error();
  }
  if (!reference) {
    return notKept(std::move(reference).error(), output);
  }
  const std::size_t whole =
      kOutputTitle.size() + end.standardOutput.size() + kErrorTitle.size() + end.standardError.size();
  const bool truncated = end.outcome == ToolCommandEnd::Outcome::kOutputLimit || content.size() < whole;
  output.artifact = KeptOutput{std::move(*reference), content.size(),    truncated,
                               preview.headBytes,     preview.tailBytes, preview.omittedBytes};
  return output;
}

RunCommandOutput unkeptCommand(const ToolContext& context, const RunCommandInput& input, const ToolCommandEnd& end) {
  ShellPreview preview = previewOf(end.standardOutput, end.standardError, context.limits.maxShellOutputBytes);
  RunCommandOutput output = cancelledCommand(input);
  output.signal = end.outcome == ToolCommandEnd::Outcome::kExited ? nullptr : "SIGKILL";
  output.standardOutput = std::move(preview.standardOutput);
  output.standardError = std::move(preview.standardError);
  return output;
}

RunCommandOutput cancelledCommand(const RunCommandInput& input) {
  RunCommandOutput output;
  output.executable = input.executable;
  output.outcome = outcomeName(ToolCommandEnd::Outcome::kCancelled);
  return output;
}

Error commandError(Error error, const RunCommandInput& input) {
  const Result<WorkspacePath> path = WorkspacePath::parse(input.directory);
  return path ? readingError(std::move(error), *path) : error;
}

}  // namespace stitchkit
