#include <boost/json/array.hpp>

#include "codingtools/coding_requests.h"
#include "rpc/base/limits.h"
#include "rpc/base/utf8.h"

namespace stitchkit {

namespace json = boost::json;

namespace {

std::string text(const json::value& value) {
  const json::string& string = value.get_string();
  return {string.data(), string.size()};
}

std::string text(const json::object& object, const char* name) {
  return text(object.at(name));
}

std::optional<std::size_t> optionalCount(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr ? std::optional(static_cast<std::size_t>(value->get_int64())) : std::nullopt;
}

std::optional<std::string> optionalText(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr ? std::optional(text(*value)) : std::nullopt;
}

std::vector<std::string> texts(const json::value& array) {
  std::vector<std::string> list;
  for (const json::value& item : array.get_array()) {
    list.push_back(text(item));
  }
  return list;
}

Error fault(std::string path, std::string message) {
  std::vector<ValidationIssue> issues{{path, message}};
  return Error(ErrorKind::kValidation, path + " " + message).withDetail("issues", std::move(issues));
}

std::string member(const char* object, const std::string& name) {
  return std::string(object) + "." + excerpt(name, limits::kEchoedCharacters);
}

/// A pattern that no path of a tool can match would protect nothing.
bool matchesNothing(std::string_view pattern) {
  const std::string slashed = "/" + std::string(pattern) + "/";
  return slashed.find("//") != std::string::npos || slashed.find("/./") != std::string::npos ||
         slashed.find("/../") != std::string::npos;
}

Result<void> deniedOf(const json::array& patterns, GuardRules& out) {
  for (const json::value& pattern : patterns) {
    Result<GlobPattern> compiled = GlobPattern::compile(text(pattern));
    if (!compiled) {
      return fault("deniedPaths." + std::to_string(out.denied.size()), "is no pattern: " + compiled.error().message);
    }
    if (matchesNothing(text(pattern))) {
      return fault("deniedPaths." + std::to_string(out.denied.size()),
                   "matches no path: paths are relative to the workspace, without empty, . or .. segments; to deny a "
                   "directory and all below it, name it without a slash at the end");
    }
    out.denied.push_back(std::move(*compiled));
  }
  return {};
}

Result<void> shellOf(const json::object& params, ShellRules& out) {
  out.requiredRestrictions = texts(params.at("requiredRestrictions"));
  if (const json::value* executables = params.if_contains("executables")) {
    for (const auto& each : executables->get_object()) {
      const std::string alias(each.key());
      const std::string path = text(each.value());
      if (alias.empty() || alias.find('\0') != std::string::npos) {
        return fault(member("executables", alias), "is no name for a program");
      }
      if (path.empty() || path.front() != '/' || path.find('\0') != std::string::npos) {
        return fault(member("executables", alias), "must be an absolute path, as a guest sees it");
      }
      out.executables.emplace(alias, path);
    }
  }
  if (const json::value* environment = params.if_contains("environment")) {
    for (const auto& each : environment->get_object()) {
      const std::string name(each.key());
      const std::string value = text(each.value());
      if (name.empty() || name.find_first_of(std::string("=\0", 2)) != std::string::npos) {
        // Not repeated: it may be a value in the wrong place.
        return fault("environment", "has a name that is empty, or holds = or NUL");
      }
      if (value.find('\0') != std::string::npos) {
        return fault(member("environment", name), "must not hold NUL");
      }
      out.environment.emplace_back(name, value);
    }
  }
  return {};
}

void limitsOf(const json::object& object, ToolLimits& out) {
  for (const auto& [name, limit] : {std::pair{"maxPathBytes", &out.maxPathBytes},
                                    {"maxReadBytes", &out.maxReadBytes},
                                    {"maxWriteBytes", &out.maxWriteBytes},
                                    {"maxShellArguments", &out.maxShellArguments},
                                    {"maxShellArgumentBytes", &out.maxShellArgumentBytes},
                                    {"maxShellOutputBytes", &out.maxShellOutputBytes},
                                    {"maxArtifactBytes", &out.maxArtifactBytes},
                                    {"maxListEntries", &out.maxListEntries},
                                    {"maxSearchResults", &out.maxSearchResults},
                                    {"maxSearchFiles", &out.maxSearchFiles},
                                    {"maxSearchDepth", &out.maxSearchDepth}}) {
    *limit = optionalCount(object, name).value_or(*limit);
  }
  out.shellTimeoutMs = static_cast<std::int64_t>(
      optionalCount(object, "shellTimeoutMs").value_or(static_cast<std::size_t>(out.shellTimeoutMs)));
}

GuardRules::Operations operationsOf(const json::string& word) {
  if (word == "host") {
    return GuardRules::Operations::kAskHost;
  }
  return word == "allow" ? GuardRules::Operations::kAllow : GuardRules::Operations::kDeny;
}

ArtifactKeeper keeperOf(const json::string& word) {
  if (word == "host") {
    return ArtifactKeeper::kHost;
  }
  return word == "sidecar" ? ArtifactKeeper::kSidecar : ArtifactKeeper::kNone;
}

}  // namespace

Result<void> decode(json::object& params, CreateToolsetParams& out) {
  out.handle = text(params, "handle");
  out.rules.guard.operations = operationsOf(params.at("authorize").get_string());
  out.rules.guard.askAboutPaths = params.at("authorizePaths").get_string() == "host";
  out.rules.artifacts = keeperOf(params.at("artifacts").get_string());
  if (const json::value* names = params.if_contains("excludeDirectories")) {
    const std::vector<std::string> list = texts(*names);
    out.rules.excludedDirectories = {list.begin(), list.end()};
  }
  if (const json::value* given = params.if_contains("limits")) {
    limitsOf(given->get_object(), out.rules.limits);
  }
  if (Result<void> denied = deniedOf(params.at("deniedPaths").get_array(), out.rules.guard); !denied) {
    return denied;
  }
  return shellOf(params, out.rules.shell);
}

Result<void> decode(json::object& params, DeleteToolsetParams& out) {
  out.toolset = text(params, "toolset");
  return {};
}

std::size_t textBytes(const json::value& value) {
  std::size_t bytes = 0;
  if (value.is_string()) {
    bytes = value.get_string().size();
  } else if (value.is_array()) {
    for (const json::value& item : value.get_array()) {
      bytes += textBytes(item);
    }
  } else if (value.is_object()) {
    for (const auto& each : value.get_object()) {
      bytes += textBytes(each.value());
    }
  }
  return bytes;
}

Result<void> decodeInput(json::object& input, ReadFileInput& out) {
  out.path = text(input, "path");
  out.offset = optionalCount(input, "offset").value_or(0);
  out.maxBytes = optionalCount(input, "maxBytes");
  return {};
}

Result<void> decodeInput(json::object& input, WriteFileInput& out) {
  out.path = text(input, "path");
  out.content = text(input, "content");
  out.overwrite = input.at("overwrite").get_bool();
  return {};
}

Result<void> decodeInput(json::object& input, EditFileInput& out) {
  out.path = text(input, "path");
  out.oldText = text(input, "oldText");
  out.newText = text(input, "newText");
  out.replaceAll = input.at("replaceAll").get_bool();
  out.expectedSha256 = optionalText(input, "expectedSha256");
  out.dryRun = input.at("dryRun").get_bool();
  return {};
}

Result<void> decodeInput(json::object& input, ListDirectoryInput& out) {
  out.path = text(input, "path");
  return {};
}

Result<void> decodeInput(json::object& input, GlobInput& out) {
  out.pattern = text(input, "pattern");
  out.path = text(input, "path");
  return {};
}

Result<void> decodeInput(json::object& input, FileSearch& out) {
  out.query = text(input, "query");
  out.mode = input.at("mode").get_string() == "path" ? FileSearch::Mode::kPath : FileSearch::Mode::kContent;
  out.regex = input.at("regex").get_bool();
  out.context = optionalCount(input, "context").value_or(0);
  out.include = optionalText(input, "include");
  return {};
}

Result<void> decodeInput(json::object& input, RunCommandInput& out) {
  out.executable = text(input, "executable");
  out.arguments = texts(input.at("args"));
  out.directory = text(input, "cwd");
  return {};
}

Result<void> decodeInput(json::object& input, ReadOutputInput& out) {
  out.reference = text(input, "reference");
  out.offset = optionalCount(input, "offset").value_or(0);
  out.maxBytes = optionalCount(input, "maxBytes");
  return {};
}

Result<void> decodeInput(json::object& input, SearchOutputInput& out) {
  out.reference = text(input, "reference");
  out.query = text(input, "query");
  out.maxMatches = optionalCount(input, "maxMatches");
  return {};
}

}  // namespace stitchkit
