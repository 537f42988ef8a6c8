#include <boost/json/array.hpp>

#include "backend/requests.h"
#include "rpc/base/base64.h"
#include "rpc/base/limits.h"
#include "rpc/base/utf8.h"

namespace stitchkit {
namespace {

namespace json = boost::json;

std::string text(const json::value& value) {
  const json::string& string = value.get_string();
  return {string.data(), string.size()};
}

std::string text(const json::object& object, const char* name) {
  return text(object.at(name));
}

Error fault(std::string path, std::string message) {
  std::vector<ValidationIssue> issues{{path, message}};
  return Error(ErrorKind::kValidation, path + " " + message).withDetail("issues", std::move(issues));
}

Result<std::string> bytesOf(const json::value& base64, const std::string& path) {
  const json::string& string = base64.get_string();
  std::optional<std::string> bytes = decodeBase64({string.data(), string.size()});
  if (!bytes) {
    return fault(path, "must be canonical base64 with padding");
  }
  return std::move(*bytes);
}

// Content = string | {base64}
Result<std::string> contentOf(const json::value& value, const std::string& path) {
  if (value.is_string()) {
    return text(value);
  }
  return bytesOf(value.get_object().at("base64"), path + ".base64");
}

Result<void> pathOf(const json::object& params, WorkspacePath& out) {
  Result<WorkspacePath> path = WorkspacePath::parse(text(params, "path"));
  if (!path) {
    return std::move(path).error();
  }
  out = std::move(*path);
  return {};
}

bool hasNul(const std::string& string) {
  return string.find('\0') != std::string::npos;
}

Result<void> environmentOf(const json::object& object, Command& out) {
  for (const auto& member : object) {
    std::string name(member.key());
    std::string value = text(member.value());
    if (name.empty() || name.find('=') != std::string::npos || hasNul(name)) {
      // Not repeated: it may be a value in the wrong place.
      return fault("command.environment", "has a name that is empty, or holds = or NUL");
    }
    if (hasNul(value)) {
      return fault("command.environment." + excerpt(name, limits::kEchoedCharacters), "must not hold NUL");
    }
    out.environment.emplace_back(std::move(name), std::move(value));
  }
  return {};
}

Result<void> argumentsOf(const json::array& array, Command& out) {
  out.arguments.reserve(array.size());
  for (const json::value& item : array) {
    std::string argument = text(item);
    if (hasNul(argument)) {
      return fault("command.args." + std::to_string(out.arguments.size()), "must not hold NUL");
    }
    out.arguments.push_back(std::move(argument));
  }
  return {};
}

Result<void> commandOf(const json::object& object, bool streamed, Command& out) {
  out.executable = text(object, "executable");
  if (hasNul(out.executable)) {
    return fault("command.executable", "must not hold NUL");
  }
  if (Result<void> arguments = argumentsOf(object.at("args").get_array(), out); !arguments) {
    return arguments;
  }
  if (const json::value* environment = object.if_contains("environment")) {
    if (Result<void> declared = environmentOf(environment->get_object(), out); !declared) {
      return declared;
    }
  }
  Result<WorkspacePath> directory = WorkspacePath::parse(text(object, "cwd"));
  if (!directory) {
    return std::move(directory).error();
  }
  out.workingDirectory = directory->canonical();
  out.timeout = std::chrono::milliseconds(object.at("timeoutMs").get_int64());
  const std::int64_t outputBytes = object.at("maxOutputBytes").get_int64();
  if (!streamed && outputBytes > limits::kCommandOutputBytesMax) {
    return fault("command.maxOutputBytes", "must be at most " + std::to_string(limits::kCommandOutputBytesMax) +
                                               " unless the output is streamed (session.spawn with stream)");
  }
  out.maxOutputBytes = static_cast<std::uint64_t>(outputBytes);
  return {};
}

Result<void> standardInputOf(const json::object& params, std::string& out) {
  if (const json::value* given = params.if_contains("stdin")) {
    Result<std::string> bytes = contentOf(*given, "stdin");
    if (!bytes) {
      return std::move(bytes).error();
    }
    out = std::move(*bytes);
  }
  return {};
}

std::vector<std::string> texts(const json::value& array) {
  std::vector<std::string> list;
  for (const json::value& item : array.get_array()) {
    list.push_back(text(item));
  }
  return list;
}

std::optional<std::vector<std::string>> optionalTexts(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr ? std::optional(texts(*value)) : std::nullopt;
}

Reflection reflectionOf(const json::value& value) {
  if (value.get_string() == "refuse") {
    return Reflection::kRefuse;
  }
  return value.get_string() == "allow" ? Reflection::kAllow : Reflection::kRedact;
}

RuleInput ruleOf(const json::object& object) {
  RuleInput rule;
  rule.origin = text(object, "origin");
  for (const auto& member : object.at("headers").get_object()) {
    rule.headers.emplace_back(member.key(), text(member.value()));
  }
  rule.methods = optionalTexts(object, "methods");
  rule.pathPrefixes = optionalTexts(object, "pathPrefixes");
  rule.requestHeaders = texts(object.at("requestHeaders"));
  rule.responseHeaders = texts(object.at("responseHeaders"));
  rule.maxRequestBytes = static_cast<std::uint64_t>(object.at("maxRequestBytes").get_int64());
  rule.maxResponseBytes = static_cast<std::uint64_t>(object.at("maxResponseBytes").get_int64());
  rule.reflection = reflectionOf(object.at("reflection"));
  return rule;
}

Result<void> policyOf(const json::value& value, NetworkPolicy& out) {
  if (value.is_string()) {
    out = value.get_string() == "allow-all" ? NetworkPolicy::allowAll() : NetworkPolicy::denyAll();
    return {};
  }
  std::vector<RuleInput> rules;
  for (const json::value& rule : value.get_object().at("allow").get_array()) {
    rules.push_back(ruleOf(rule.get_object()));
  }
  Result<NetworkPolicy> policy = NetworkPolicy::allowList(rules, "network");
  if (!policy) {
    return std::move(policy).error();
  }
  out = std::move(*policy);
  return {};
}

Result<void> filesOf(const json::object& files, TemplateParams& out) {
  out.files.reserve(files.size());
  for (const auto& member : files) {
    std::string path(member.key());
    Result<std::string> content = contentOf(member.value(), "files." + excerpt(path, limits::kEchoedCharacters));
    if (!content) {
      return std::move(content).error();
    }
    out.files.push_back({std::move(path), std::move(*content)});
  }
  return {};
}

SessionState stateOf(const json::object& object) {
  return {text(object, "backend"), text(object, "sessionId"), text(object, "templateKey")};
}

std::optional<std::uint64_t> ceiling(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr ? std::optional(static_cast<std::uint64_t>(value->get_int64())) : std::nullopt;
}

void resourcesOf(const json::object& object, Resources& out) {
  out.session.memoryBytes = ceiling(object, "memoryBytes");
  out.session.processes = ceiling(object, "maxProcesses");
  if (const json::value* cpus = object.if_contains("cpus")) {
    out.session.cpus = cpus->to_number<double>();
  }
  out.tmpBytes = ceiling(object, "tmpBytes").value_or(out.tmpBytes);
  out.maxFileBytes = ceiling(object, "maxFileBytes");
  out.maxOpenFiles = ceiling(object, "maxOpenFiles");
}

}  // namespace

Result<void> decode(json::object&, NoParams&) {
  return {};
}

Result<void> decode(json::object& params, InitializeParams& out) {
  if (const json::value* client = params.if_contains("client")) {
    out.clientName = text(client->get_object(), "name");
    out.clientVersion = text(client->get_object(), "version");
  }
  const json::value* given = params.if_contains("backend");
  if (given == nullptr) {
    return {};
  }
  const json::object& backend = given->get_object();
  const auto optionalText = [&](const char* name) -> std::optional<std::string> {
    const json::value* value = backend.if_contains(name);
    return value != nullptr ? std::optional(text(*value)) : std::nullopt;
  };
  out.stateDirectory = optionalText("stateDirectory");
  out.name = optionalText("name");
  out.executable = optionalText("executable");
  if (const json::value* commands = backend.if_contains("maxConcurrentCommands")) {
    out.maxConcurrentCommands = static_cast<int>(commands->get_int64());
  }
  for (const auto& [member, path] :
       {std::pair{"stateDirectory", &out.stateDirectory}, std::pair{"executable", &out.executable}}) {
    if (*path && (path->value().front() != '/' || hasNul(path->value()))) {
      return fault(std::string("backend.") + member, "must be an absolute path");
    }
  }
  return {};
}

Result<void> decode(json::object& params, TemplateParams& out) {
  out.name = text(params, "template");
  const json::value* files = params.if_contains("files");
  return files != nullptr ? filesOf(files->get_object(), out) : Result<void>{};
}

Result<void> decode(json::object& params, CreateParams& out) {
  json::value& source = params.at("template");
  if (source.is_string()) {
    out.source = text(source);
  } else {
    TemplateParams made;
    if (Result<void> fits = decode(source.get_object(), made); !fits) {
      return fits;
    }
    out.source = std::move(made);
  }
  if (Result<void> fits = policyOf(params.at("network"), out.network); !fits) {
    return fits;
  }
  if (const json::value* state = params.if_contains("state")) {
    out.state = stateOf(state->get_object());
  }
  out.resources.tmpBytes = static_cast<std::uint64_t>(limits::kTmpBytes);
  if (const json::value* resources = params.if_contains("resources")) {
    resourcesOf(resources->get_object(), out.resources);
  }
  return {};
}

Result<void> decode(json::object& params, HandleParams& out) {
  out.handle = text(params, "handle");
  return {};
}

Result<void> decode(json::object& params, PathParams& out) {
  out.handle = text(params, "handle");
  return pathOf(params, out.path);
}

Result<void> decode(json::object& params, WriteParams& out) {
  out.handle = text(params, "handle");
  if (const json::value* base64 = params.if_contains("base64")) {
    Result<std::string> bytes = bytesOf(*base64, "base64");
    if (!bytes) {
      return std::move(bytes).error();
    }
    out.bytes = std::move(*bytes);
  } else {
    out.bytes = text(params, "text");
  }
  return pathOf(params, out.path);
}

Result<void> decode(json::object& params, RunParams& out) {
  out.handle = text(params, "handle");
  out.base64 = params.at("encoding").get_string() == "base64";
  Result<void> input = standardInputOf(params, out.standardInput);
  return input ? commandOf(params.at("command").get_object(), false, out.command) : std::move(input);
}

Result<void> decode(json::object& params, SpawnParams& out) {
  out.handle = text(params, "handle");
  out.stream = params.at("stream").get_bool();
  Result<void> input = standardInputOf(params, out.standardInput);
  return input ? commandOf(params.at("command").get_object(), out.stream, out.command) : std::move(input);
}

Result<void> decode(json::object& params, ProcessParams& out) {
  out.process = text(params, "process");
  return {};
}

Result<void> decode(json::object& params, PolicyParams& out) {
  out.handle = text(params, "handle");
  return policyOf(params.at("network"), out.network);
}

}  // namespace stitchkit
