// The compiled checker against an independent validator (valijson) on the same document, over parameters that are good
// and over many that are bad in one place.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <vector>

#include "conformance/json_schema.h"
#include "schema/openrpc.h"

namespace stitchkit {
namespace {

using Json = nlohmann::json;
using Pointer = Json::json_pointer;

const Json& document() {
  static const Json parsed = Json::parse(boost::json::serialize(OpenRpc::instance().document()));
  return parsed;
}

/// The schema of a method's parameters as an object, put together here and not by the product.
conformance::JsonSchema oracleFor(const Json& method) {
  Json schema = {{"type", "object"},
                 {"properties", Json::object()},
                 {"required", Json::array()},
                 {"additionalProperties", false},
                 {"components", document()["components"]}};
  for (const Json& param : method["params"]) {
    schema["properties"][param["name"].get<std::string>()] = param["schema"];
    if (param["required"] == true) {
      schema["required"].push_back(param["name"]);
    }
  }
  return conformance::JsonSchema(schema);
}

bool weAccept(const std::string& method, const Json& params) {
  return OpenRpc::instance().checkParams(method, boost::json::parse(params.dump())).has_value();
}

const std::string kKey(64, 'a');

/// Parameters with every optional member, to be varied; the examples of the document come on top.
std::vector<Json> fullParams(const std::string& method) {
  const Json command = {{"executable", "/bin/sh"},     {"args", {"-c", "true"}},  {"cwd", "dir"},
                        {"environment", {{"A", "b"}}}, {"timeoutMs", 2147483647}, {"maxOutputBytes", 1}};
  const Json rule = {{"origin", "https://a.example"},
                     {"headers", {{"authorization", "x"}}},
                     {"methods", {"GET"}},
                     {"pathPrefixes", {"/v1"}},
                     {"requestHeaders", {"x-a"}},
                     {"responseHeaders", {"x-b"}},
                     {"maxRequestBytes", 0},
                     {"maxResponseBytes", 0},
                     {"reflection", "refuse"}};
  const Json files = {{"a", "text"}, {"b/c", {{"base64", "eA=="}}}};
  const Json state = {{"backend", "b"}, {"sessionId", kKey}, {"templateKey", kKey}};
  static const std::map<std::string, std::vector<Json>> table = {
      {"initialize",
       {{{"protocolVersion", 1},
         {"client", {{"name", "n"}, {"version", "v"}}},
         {"backend",
          {{"stateDirectory", "/s"},
           {"name", "n"},
           {"executable", "/usr/bin/bwrap"},
           {"maxConcurrentCommands", 1024}}}},
        Json::object()}},
      {"backend.prewarm", {{{"template", "t"}, {"files", files}}, {{"template", ""}, {"files", Json::object()}}}},
      {"backend.create",
       {{{"template", {{"template", "t"}, {"files", files}}},
         {"network", {{"allow", {rule}}}},
         {"state", state},
         {"resources",
          {{"memoryBytes", 1},
           {"maxProcesses", 1},
           {"cpus", 0.5},
           {"tmpBytes", 1},
           {"maxFileBytes", 1},
           {"maxOpenFiles", 1}}}},
        {{"template", kKey}, {"network", "allow-all"}, {"resources", {{"cpus", 2}}}}}},
      {"session.run",
       {{{"handle", "h1"}, {"command", command}, {"stdin", {{"base64", "eA=="}}}, {"encoding", "base64"}},
        {{"handle", "h1"}, {"command", command}, {"stdin", "text"}}}},
      {"session.spawn", {{{"handle", "h1"}, {"command", command}, {"stdin", "text"}, {"stream", false}}}},
      {"session.setNetworkPolicy", {{{"handle", "h1"}, {"network", {{"allow", {rule, {{"origin", "http://b"}}}}}}}}},
      {"coding.create",
       {{{"handle", "h1"},
         {"authorize", "deny"},
         {"authorizePaths", "allow"},
         {"deniedPaths", {"**/.env", "secret"}},
         {"requiredRestrictions", {"network-denied"}},
         {"executables", {{"sh", "/bin/sh"}}},
         {"environment", {{"A", "b"}}},
         {"artifacts", "none"},
         {"excludeDirectories", {"node_modules"}},
         {"limits",
          {{"maxPathBytes", 4096},
           {"maxReadBytes", 8388608},
           {"maxWriteBytes", 8388608},
           {"maxShellArguments", 4096},
           {"maxShellArgumentBytes", 2097152},
           {"maxShellOutputBytes", 8388608},
           {"maxArtifactBytes", 50331648},
           {"maxListEntries", 10000},
           {"maxSearchResults", 10000},
           {"maxSearchFiles", 1000000},
           {"maxSearchDepth", 256},
           {"shellTimeoutMs", 2147483647},
           {"shellTerminationGraceMs", 60000}}}}}},
      {"$/cancelRequest", {{{"id", 1}}, {{"id", "1"}}, {{"id", nullptr}}}},
  };
  const auto found = table.find(method);
  return found == table.end() ? std::vector<Json>{} : found->second;
}

std::vector<Json> goodParams(const Json& method) {
  std::vector<Json> good = fullParams(method["name"]);
  for (const Json& example : method.value("examples", Json::array())) {
    Json params = Json::object();
    for (const Json& param : example["params"]) {
      params[param["name"].get<std::string>()] = param["value"];
    }
    good.push_back(std::move(params));
  }
  if (good.empty()) {
    good.push_back(Json::object());
  }
  return good;
}

/// Every place in a value, itself first.
void collectPlaces(const Json& value, const Pointer& here, std::vector<Pointer>& places) {
  places.push_back(here);
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) {
      collectPlaces(member, here / name, places);
    }
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      collectPlaces(value[i], here / i, places);
    }
  }
}

/// What is put into each place: each type, the bounds of the document and their neighbours, near misses of words.
const std::vector<Json>& intruders() {
  static const std::vector<Json> values = {
      nullptr,
      true,
      false,
      "",
      "x",
      "\xC3\xA9",
      0,
      1,
      -1,
      2,
      1.5,
      0.0005,
      0.001,
      255,
      256,
      1024,
      1025,
      2147483647,
      2147483648,
      10,
      11,
      4096,
      4097,
      60001,
      10000,
      10001,
      8388608,
      8388609,
      67108864,
      67108865,
      9007199254740991,
      9007199254740992,
      9223372036854775807,
      Json::array(),
      {"x"},
      {1},
      {{nullptr}},
      Json::object(),
      {{"x", 1}},
      {{"base64", "eA=="}},
      {{"base64", 1}},
      {{"base64", "eA=="}, {"more", 1}},
      {{"template", "t"}},
      {{"allow", Json::array()}},
      {{"allow", {{{"origin", "o"}}}}},
      "utf8",
      "base64",
      "UTF8",
      "allow-all",
      "deny-all",
      "allow-All",
      "redact",
      "allow",
      "host",
      "path",
      "read",
      "/bin/sh",
      "stdout",
      std::string(63, 'a'),
      std::string(64, 'a'),
      std::string(65, 'a'),
      std::string(64, 'A'),
      std::string(64, 'g'),
  };
  return values;
}

/// Calls `each` with the value changed in one place.
template <class Each>
void forEachMutation(const Json& good, Each each) {
  std::vector<Pointer> places;
  collectPlaces(good, Pointer(), places);
  for (const Pointer& place : places) {
    for (const Json& intruder : intruders()) {
      Json mutant = good;
      mutant[place] = intruder;
      if (mutant.is_object()) {  // parameters that are no object are refused before the schema
        each(mutant);
      }
    }
    if (good[place].is_object()) {
      Json mutant = good;
      mutant[place]["unknown"] = "x";
      each(mutant);
    }
    if (!place.empty() && good[place.parent_pointer()].is_object()) {
      Json mutant = good;
      mutant[place.parent_pointer()].erase(place.back());
      each(mutant);
    }
  }
}

}  // namespace

TEST_CASE("every method of the document compiles and is known", "[agreement]") {
  CHECK(document()["methods"].size() >= 40);
  for (const Json& method : document()["methods"]) {
    CHECK(OpenRpc::instance().hasMethod(method["name"].get<std::string>()));
    CHECK_NOTHROW(oracleFor(method));
  }
}

TEST_CASE("good parameters of every method are accepted by both", "[agreement]") {
  for (const Json& method : document()["methods"]) {
    const conformance::JsonSchema oracle = oracleFor(method);
    for (const Json& params : goodParams(method)) {
      INFO(method["name"] << " " << params.dump());
      CHECK(weAccept(method["name"], params));
      CHECK(oracle.accepts(params));
    }
  }
}

TEST_CASE("parameters that are changed in one place get the same verdict from both", "[agreement]") {
  std::size_t accepted = 0;
  std::size_t refused = 0;
  for (const Json& method : document()["methods"]) {
    const std::string name = method["name"];
    const conformance::JsonSchema oracle = oracleFor(method);
    for (const Json& good : goodParams(method)) {
      forEachMutation(good, [&](const Json& params) {
        const bool ours = weAccept(name, params);
        (ours ? accepted : refused) += 1;
        if (ours != oracle.accepts(params)) {
          FAIL_CHECK(name << " " << params.dump() << ": we " << (ours ? "accept" : "refuse"));
        }
      });
    }
  }
  // The table must have found both kinds, or it tests nothing.
  CHECK(accepted > 1000);
  CHECK(refused > 5000);
}

TEST_CASE("each required parameter is missed under its name, each unknown one named", "[agreement]") {
  const auto firstIssue = [](const std::string& method, const Json& params) {
    const auto checked = OpenRpc::instance().checkParams(method, boost::json::parse(params.dump()));
    REQUIRE(checked.has_error());
    const Error error = checked.error();
    const auto& issues = std::get<std::vector<ValidationIssue>>(error.details.at(0).second);
    REQUIRE(issues.size() == 1);
    return issues[0].path + " " + issues[0].message;
  };
  for (const Json& method : document()["methods"]) {
    const std::string name = method["name"];
    const Json good = goodParams(method).front();
    for (const Json& param : method["params"]) {
      const std::string member = param["name"];
      Json without = good;
      without.erase(member);
      INFO(name << " without " << member);
      if (param["required"] == true) {
        CHECK(firstIssue(name, without) == member + " is required");
      } else {
        CHECK(weAccept(name, without));
      }
    }
    Json more = good;
    more["unknown"] = 1;
    INFO(name);
    CHECK(firstIssue(name, more) == "unknown is not known here");
  }
}

TEST_CASE("the defaults of the document fit their own schemas", "[agreement]") {
  // What is filled in is not checked again, so that a wrong default would reach a handler.
  for (const Json& method : document()["methods"]) {
    const conformance::JsonSchema oracle = oracleFor(method);
    for (const Json& params : goodParams(method)) {
      auto checked =
          OpenRpc::instance().checkParams(method["name"].get<std::string>(), boost::json::parse(params.dump()));
      REQUIRE(checked.has_value());
      const Json filled = Json::parse(boost::json::serialize(*checked));
      INFO(method["name"] << " " << filled.dump());
      CHECK(oracle.accepts(filled));
    }
  }
}

}  // namespace stitchkit
