#include "codingtools/tool_definitions.h"

#include <boost/json/object.hpp>
#include <boost/json/value_from.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

#include "schema/openrpc.h"

namespace stitchkit {

namespace json = boost::json;

namespace {

constexpr std::string_view kMethodPrefix = "coding.";
constexpr std::string_view kSchemaPrefix = "#/components/schemas/";

std::string_view view(const json::value& text) {
  return {text.as_string().data(), text.as_string().size()};
}

/// A copy in which each reference has been replaced by what it refers to. No schema of a tool refers to itself.
json::value selfContained(const json::value& schema) {
  if (const json::array* list = schema.if_array()) {
    json::array copy;
    for (const json::value& item : *list) {
      copy.push_back(selfContained(item));
    }
    return copy;
  }
  const json::object* object = schema.if_object();
  if (object == nullptr) {
    return schema;
  }
  if (const json::value* reference = object->if_contains("$ref")) {
    const json::object& components = OpenRpc::instance().document().at("components").at("schemas").as_object();
    return selfContained(components.at(view(*reference).substr(kSchemaPrefix.size())));
  }
  json::object copy;
  for (const auto& member : *object) {
    copy.emplace(member.key(), selfContained(member.value()));
  }
  return copy;
}

const json::value& inputSchema(const json::object& method) {
  const json::array& params = method.at("params").as_array();
  const auto* const input = std::find_if(params.begin(), params.end(),
                                         [](const json::value& param) { return view(param.at("name")) == "input"; });
  return input->at("schema");
}

/// What only the toolset knows.
void fit(std::string_view tool, json::object& properties, const ToolOffer& offer) {
  if (tool == "run_command") {
    properties.at("executable").as_object()["enum"] = json::value_from(offer.executables);
  } else if (tool == "read_file" || tool == "read_output") {
    properties.at("maxBytes").as_object()["default"] = offer.limits.maxReadBytes;
  } else if (tool == "search_output") {
    json::object& most = properties.at("maxMatches").as_object();
    most["maximum"] = offer.limits.maxSearchResults;
    most["default"] = std::min(kUsualOutputMatches, offer.limits.maxSearchResults);
  }
}

json::object definition(std::string_view tool, const json::object& method, const ToolOffer& offer) {
  std::string action(tool);
  std::replace(action.begin(), action.end(), '_', '-');
  json::value input = selfContained(inputSchema(method));
  fit(tool, input.at("properties").as_object(), offer);
  return {{"name", tool},
          {"method", method.at("name")},
          {"description", method.at("description")},
          {"identity", {{"serviceName", "coding"}, {"action", action}, {"method", "POST"}}},
          {"inputSchema", std::move(input)},
          {"outputSchema", selfContained(method.at("result").at("schema"))},
          {"transports", json::array{"AGENT"}}};
}

}  // namespace

bool ToolOffer::has(std::string_view tool) const {
  if (tool == "run_command") {
    return !executables.empty();
  }
  return keepsOutput || (tool != "read_output" && tool != "search_output");
}

json::array toolDefinitions(const ToolOffer& offer) {
  json::array definitions;
  for (const json::value& entry : OpenRpc::instance().document().at("methods").as_array()) {
    const json::object& method = entry.as_object();
    const std::string_view name = view(method.at("name"));
    if (name.substr(0, kMethodPrefix.size()) != kMethodPrefix || name == "coding.create" || name == "coding.delete") {
      continue;
    }
    const std::string_view tool = name.substr(kMethodPrefix.size());
    if (offer.has(tool)) {
      definitions.push_back(definition(tool, method, offer));
    }
  }
  return definitions;
}

}  // namespace stitchkit
