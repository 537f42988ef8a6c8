#include "conformance/contract.h"

#include <map>
#include <set>

#include "conformance/json_schema.h"

namespace conformance {
namespace {

using Problem = std::optional<std::string>;

struct Method {
  bool notification = false;
  bool toHost = false;
  bool toSidecar = false;
  std::optional<JsonSchema> params;
  std::optional<JsonSchema> result;
  std::set<std::string> errors;
};

Json paramsSchema(const Json& method, const Json& components) {
  Json schema = {
      {"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}, {"components", components}};
  for (const auto& param : method.at("params")) {
    const auto name = param.at("name").get<std::string>();
    schema["properties"][name] = param.at("schema");
    if (param.value("required", false)) {
      schema["required"].push_back(name);
    }
  }
  return schema;
}

Method compileMethod(const Json& method, const Json& components) {
  Method made;
  made.notification = method.value("x-notification", false);
  const std::string direction = method.value("x-direction", "to-sidecar");
  made.toHost = direction != "to-sidecar";
  made.toSidecar = direction != "to-host";
  made.params.emplace(paramsSchema(method, components));
  if (!made.notification) {
    made.result.emplace(Json{{"allOf", {method.at("result").at("schema")}}, {"components", components}});
    constexpr std::string_view kPrefix = "#/components/errors/";
    for (const auto& error : method.at("errors")) {
      made.errors.insert(error.at("$ref").get<std::string>().substr(kPrefix.size()));
    }
  }
  return made;
}

}  // namespace

struct Contract::Compiled {
  std::map<std::string, Method> methods;
  std::map<std::string, int> errorNumbers;  ///< by stable name
  std::optional<JsonSchema> errorData;
};

std::unique_ptr<Contract> Contract::compile(const Json& document, std::string& problem) {
  try {
    auto compiled = std::make_unique<Compiled>();
    const Json& components = document.at("components");
    for (const auto& method : document.at("methods")) {
      compiled->methods.emplace(method.at("name").get<std::string>(), compileMethod(method, components));
    }
    for (const auto& [name, error] : components.at("errors").items()) {
      compiled->errorNumbers[name] = error.at("code").get<int>();
    }
    compiled->errorData.emplace(
        Json{{"allOf", {{{"$ref", "#/components/schemas/ErrorData"}}}}, {"components", components}});
    return std::unique_ptr<Contract>(new Contract(std::move(compiled)));
  } catch (const std::exception& error) {
    problem = error.what();
    return nullptr;
  }
}

Contract::Contract(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
Contract::~Contract() = default;

bool Contract::knows(const std::string& method) const {
  const auto found = compiled_->methods.find(method);
  return found != compiled_->methods.end() && found->second.toSidecar;
}

Problem Contract::checkParams(const std::string& method, const Json& params) const {
  const auto found = compiled_->methods.find(method);
  if (found == compiled_->methods.end() || !found->second.toSidecar) {
    return "no method that a host may call: " + method;
  }
  return found->second.params->problemOf(params);
}

Problem Contract::checkResult(const std::string& method, const Json& result) const {
  const auto found = compiled_->methods.find(method);
  if (found == compiled_->methods.end() || found->second.notification) {
    return "a result for something that is no method of the document: " + method;
  }
  return found->second.result->problemOf(result);
}

Problem Contract::checkError(const std::string& method, const Json& error) const {
  if (!error.is_object() || error.size() != 3 || !error.contains("code") || !error["code"].is_number_integer() ||
      !error.contains("message") || !error["message"].is_string() || !error.contains("data")) {
    return "an error has code, message and data, and nothing else";
  }
  if (Problem problem = compiled_->errorData->problemOf(error["data"])) {
    return "error.data: " + *problem;
  }
  const auto name = error["data"]["code"].get<std::string>();
  const auto number = compiled_->errorNumbers.find(name);
  if (number == compiled_->errorNumbers.end() || error["code"] != number->second) {
    return "error.code " + error["code"].dump() + " does not belong to " + name;
  }
  const auto found = compiled_->methods.find(method);
  if (found != compiled_->methods.end() && !found->second.errors.contains(name)) {
    return method + " does not list the error " + name;
  }
  return std::nullopt;
}

Problem Contract::checkNotification(const std::string& method, const Json& params) const {
  const auto found = compiled_->methods.find(method);
  if (found == compiled_->methods.end() || !found->second.notification || !found->second.toHost) {
    return "not a notification to the host: " + method;
  }
  return found->second.params->problemOf(params);
}

Problem Contract::checkHostRequest(const std::string& method, const Json& params) const {
  const auto found = compiled_->methods.find(method);
  if (found == compiled_->methods.end() || found->second.notification || !found->second.toHost) {
    return "not a request to the host: " + method;
  }
  return found->second.params->problemOf(params);
}

Problem checkAgainst(const Json& schema, const Json& value) {
  try {
    return JsonSchema(schema).problemOf(value);
  } catch (const std::exception& error) {
    return std::string("the schema is wrong: ") + error.what();
  }
}

}  // namespace conformance
