#include "schema/openrpc.h"

#include <boost/json/parse.hpp>

#include <stdexcept>

// schema/embed.S
extern "C" const char stitchkitOpenRpcBegin[];
extern "C" const char stitchkitOpenRpcEnd[];

namespace stitchkit {

namespace json = boost::json;

namespace {

json::object parseDocument() {
  const std::string_view text(stitchkitOpenRpcBegin,
                              // cppcheck-suppress comparePointers ; two labels of one section
                              static_cast<std::size_t>(stitchkitOpenRpcEnd - stitchkitOpenRpcBegin));
  return json::parse(json::string_view(text.data(), text.size())).as_object();
}

// OpenRPC lists parameters one by one; a call by name is an object of them.
json::value paramsSchema(const json::object& method) {
  json::object properties;
  json::array required;
  for (const json::value& entry : method.at("params").as_array()) {
    const json::object& param = entry.as_object();
    properties[param.at("name").as_string()] = param.at("schema");
    const json::value* needed = param.if_contains("required");
    if (needed != nullptr && needed->as_bool()) {
      required.push_back(param.at("name"));
    }
  }
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

}  // namespace

OpenRpc::OpenRpc() : document_(parseDocument()), schemas_(document_.at("components").at("schemas").as_object()) {
  for (const json::value& entry : document_.at("methods").as_array()) {
    const json::object& method = entry.as_object();
    const json::string& name = method.at("name").as_string();
    params_.emplace(std::string(name.data(), name.size()), &schemas_.compile(paramsSchema(method)));
  }
}

const OpenRpc& OpenRpc::instance() {
  static const OpenRpc openRpc;
  return openRpc;
}

bool OpenRpc::hasMethod(std::string_view name) const {
  return params_.find(name) != params_.end();
}

Result<json::object> OpenRpc::checkParams(std::string_view method, json::value params) const {
  const auto found = params_.find(method);
  if (found == params_.end()) {
    throw std::logic_error("no schema for method " + std::string(method));
  }
  std::vector<ValidationIssue> issues;
  if (params.is_null()) {
    params = json::object();
  }
  if (params.is_array()) {
    issues.push_back({"", "must be an object: parameters go by name"});
  } else {
    checkAgainst(*found->second, params, "", issues);
  }
  if (!issues.empty()) {
    const std::string first =
        (issues.front().path.empty() ? "params" : issues.front().path) + " " + issues.front().message;
    return Error(ErrorKind::kValidation, "The parameters of " + std::string(method) + " do not fit: " + first)
        .withDetail("issues", std::move(issues))
        .withHint("Compare them with the schema of the method, which rpc.discover gives, or of the tool's input.");
  }
  // cppcheck-suppress returnStdMoveLocal ; a part of it, which no rule elides
  return std::move(params.get_object());
}

}  // namespace stitchkit
