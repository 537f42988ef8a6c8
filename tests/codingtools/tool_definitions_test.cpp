// What a model is told: whole, self-contained, and fitted to the toolset.
#include "codingtools/tool_definitions.h"

#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "schema/openrpc.h"

namespace stitchkit {
namespace {

using Json = nlohmann::json;
using Strings = std::vector<std::string>;

ToolOffer everything() {
  ToolOffer offer;
  offer.executables = {"git", "node"};
  offer.keepsOutput = true;
  return offer;
}

Json definitions(const ToolOffer& offer) {
  return Json::parse(boost::json::serialize(toolDefinitions(offer)));
}

Json definition(const std::string& name, const ToolOffer& offer) {
  for (const Json& tool : definitions(offer)) {
    if (tool["name"] == name) {
      return tool;
    }
  }
  FAIL("no tool " << name);
  return {};
}

Strings names(const ToolOffer& offer) {
  Strings found;
  for (const Json& tool : definitions(offer)) {
    found.push_back(tool["name"]);
  }
  return found;
}

/// Whether each property, at every depth, says what it is, and nothing points out of the schema.
void checkSchema(const Json& schema, const std::string& where) {
  INFO(where);
  REQUIRE(schema.is_object());
  CHECK_FALSE(schema.contains("$ref"));
  CHECK((schema.contains("type") || schema.contains("enum") || schema.contains("const")));
  if (schema.value("type", Json()) == "object") {
    CHECK(schema["additionalProperties"] == false);
    for (const auto& [name, property] : schema["properties"].items()) {
      CHECK(property.value("description", "").size() >= 10);
      checkSchema(property, where + "." + name);
    }
    for (const Json& name : schema.value("required", Json::array())) {
      CHECK(schema["properties"].contains(name.get<std::string>()));
    }
  }
  if (schema.contains("items")) {
    checkSchema(schema["items"], where + "[]");
  }
}

}  // namespace

TEST_CASE("tool definitions: a toolset has the tools that it can carry out", "[tool-definitions]") {
  const Strings files = {"read_file", "write_file", "edit_file", "list_directory", "glob", "search_files"};
  Strings all = files;
  all.insert(all.end(), {"run_command", "read_output", "search_output"});
  CHECK(names(everything()) == all);
  CHECK(names(ToolOffer{}) == files);
  ToolOffer shell;
  shell.executables = {"git"};
  Strings withShell = files;
  withShell.emplace_back("run_command");
  CHECK(names(shell) == withShell);
}

TEST_CASE("tool definitions: each is whole and stands for itself", "[tool-definitions]") {
  for (const Json& tool : definitions(everything())) {
    const std::string name = tool["name"];
    INFO(name);
    CHECK(tool.size() == 7);
    CHECK(tool["method"] == "coding." + name);
    CHECK(OpenRpc::instance().hasMethod("coding." + name));
    CHECK(tool["description"].get<std::string>().size() > 100);
    CHECK(tool["transports"] == Json{"AGENT"});
    checkSchema(tool["inputSchema"], "input");
    checkSchema(tool["outputSchema"], "output");
    CHECK(tool["inputSchema"]["type"] == "object");
    CHECK(tool["outputSchema"]["type"] == "object");
    CHECK(tool.dump().find("$ref") == std::string::npos);
    CHECK(tool.dump().find("components") == std::string::npos);
  }
  CHECK(definition("read_file", everything())["identity"] ==
        Json{{"serviceName", "coding"}, {"action", "read-file"}, {"method", "POST"}});
}

TEST_CASE("tool definitions: names and requirements of the inputs", "[tool-definitions]") {
  const auto input = [](const std::string& tool) {
    const Json schema = definition(tool, everything())["inputSchema"];
    std::set<std::string> members;
    for (const auto& [name, property] : schema["properties"].items()) {
      const Json required = schema.value("required", Json::array());
      members.insert(std::find(required.begin(), required.end(), name) != required.end() ? name : name + "?");
    }
    return members;
  };
  using Members = std::set<std::string>;
  CHECK(input("read_file") == Members{"path", "offset?", "maxBytes?"});
  CHECK(input("write_file") == Members{"path", "content", "overwrite?"});
  CHECK(input("edit_file") == Members{"path", "oldText", "newText", "replaceAll?", "expectedSha256?", "dryRun?"});
  CHECK(input("list_directory") == Members{"path?"});
  CHECK(input("glob") == Members{"pattern", "path?"});
  CHECK(input("search_files") == Members{"query", "mode?", "regex?", "context?", "include?"});
  CHECK(input("run_command") == Members{"executable", "args?", "cwd?"});
  CHECK(input("read_output") == Members{"reference", "offset?", "maxBytes?"});
  CHECK(input("search_output") == Members{"reference", "query", "maxMatches?"});
}

TEST_CASE("tool definitions: limits and executables of the toolset are in the schemas", "[tool-definitions]") {
  ToolOffer offer = everything();
  const auto property = [&](const std::string& tool, const std::string& name) {
    return definition(tool, offer)["inputSchema"]["properties"][name];
  };
  CHECK(property("run_command", "executable")["enum"] == Json{"git", "node"});
  CHECK(property("search_output", "maxMatches")["maximum"] == 100);
  CHECK(property("search_output", "maxMatches")["default"] == 20);
  CHECK(property("read_file", "maxBytes")["default"] == 262144);
  offer.limits.maxSearchResults = 5;
  offer.limits.maxReadBytes = 10;
  CHECK(property("search_output", "maxMatches")["maximum"] == 5);
  CHECK(property("search_output", "maxMatches")["default"] == 5);
  // More is clipped, and no error.
  CHECK(property("read_file", "maxBytes")["default"] == 10);
  CHECK(property("read_output", "maxBytes")["default"] == 10);
  CHECK(property("read_file", "maxBytes")["maximum"] == 9007199254740991);
}

TEST_CASE("tool limits: the document's defaults are the program's", "[tool-definitions]") {
  const auto checked = OpenRpc::instance().checkParams(
      "coding.create", {{"handle", "h1"}, {"authorize", "allow"}, {"limits", boost::json::object()}});
  REQUIRE(checked.has_value());
  const Json limits = Json::parse(boost::json::serialize(*checked))["limits"];
  const ToolLimits ours;
  CHECK(limits == Json{{"maxPathBytes", ours.maxPathBytes},
                       {"maxReadBytes", ours.maxReadBytes},
                       {"maxWriteBytes", ours.maxWriteBytes},
                       {"maxShellArguments", ours.maxShellArguments},
                       {"maxShellArgumentBytes", ours.maxShellArgumentBytes},
                       {"maxShellOutputBytes", ours.maxShellOutputBytes},
                       {"maxArtifactBytes", ours.maxArtifactBytes},
                       {"maxListEntries", ours.maxListEntries},
                       {"maxSearchResults", ours.maxSearchResults},
                       {"maxSearchFiles", ours.maxSearchFiles},
                       {"maxSearchDepth", ours.maxSearchDepth},
                       {"shellTimeoutMs", ours.shellTimeoutMs},
                       {"shellTerminationGraceMs", 250}});
}

}  // namespace stitchkit
