// The compiled checker by itself, and the parameters of our own methods: verdicts, issue paths, defaults.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "schema/openrpc.h"
#include "schema/schema.h"

namespace stitchkit {
namespace {

using Json = nlohmann::json;
using Strings = std::vector<std::string>;

boost::json::value parsed(std::string_view text) {
  return boost::json::parse(boost::json::string_view(text.data(), text.size()));
}

/// The value as it is after the check, or its issues as "path: message".
struct Checked {
  Json value;
  Strings issues;
};

/// One schema with the components that it may refer to.
class Schema {
 public:
  explicit Schema(std::string_view schema, std::string_view components = "{}")
      : components_(parsed(components).as_object()), set_(components_), node_(set_.compile(parsed(schema))) {}

  Checked operator()(std::string_view text) const {
    boost::json::value value = parsed(text);
    std::vector<ValidationIssue> issues;
    checkAgainst(node_, value, "", issues);
    Checked checked{Json::parse(boost::json::serialize(value)), {}};
    for (const ValidationIssue& issue : issues) {
      checked.issues.push_back(issue.path + ": " + issue.message);
    }
    return checked;
  }
  bool accepts(std::string_view text) const { return (*this)(text).issues.empty(); }

 private:
  boost::json::object components_;
  SchemaSet set_;
  const SchemaNode& node_;
};

void refusesToCompile(std::string_view schema, std::string_view components = "{}") {
  INFO(schema);
  CHECK_THROWS_AS(Schema(schema, components), std::logic_error);
}

Result<boost::json::object> checkParams(std::string_view method, const Json& params) {
  return OpenRpc::instance().checkParams(method, parsed(params.dump()));
}

/// The issues of a call as path and message.
std::vector<std::pair<std::string, std::string>> issuesOf(std::string_view method, const Json& params) {
  const auto checked = checkParams(method, params);
  std::vector<std::pair<std::string, std::string>> issues;
  if (checked.has_error()) {
    const Error error = checked.error();
    CHECK(error.kind == ErrorKind::kValidation);
    for (const auto& [name, detail] : error.details) {
      if (name == "issues") {
        for (const ValidationIssue& issue : std::get<std::vector<ValidationIssue>>(detail)) {
          issues.emplace_back(issue.path, issue.message);
        }
      }
    }
    CHECK_FALSE(issues.empty());
  }
  return issues;
}

Strings pathsOf(std::string_view method, const Json& params) {
  Strings paths;
  for (const auto& [path, message] : issuesOf(method, params)) {
    paths.push_back(path);
    CHECK_FALSE(message.empty());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The parameters that a handler gets; all must fit.
Json filled(std::string_view method, const Json& params) {
  auto checked = checkParams(method, params);
  INFO(params.dump());
  REQUIRE(checked.has_value());
  return Json::parse(boost::json::serialize(*checked));
}

Json run(Json command) {
  return {{"handle", "h1"}, {"command", std::move(command)}};
}

}  // namespace

TEST_CASE("compile: what is not understood is refused, never ignored", "[schema]") {
  refusesToCompile(R"({"type":"string","format":"uri"})");
  refusesToCompile(R"({"not":{"type":"string"}})");
  refusesToCompile(R"({"allOf":[{"type":"string"}]})");
  refusesToCompile(R"({"patternProperties":{}})");
  refusesToCompile(R"({"uniqueItems":true})");
  refusesToCompile(R"({"multipleOf":2})");
  refusesToCompile(R"({"properties":{"deep":{"items":{"oneOf":[{"typo":1}]}}}})");
  refusesToCompile(R"({"type":"text"})");
  refusesToCompile(R"({"type":["string","text"]})");
  refusesToCompile(R"({"pattern":"("})");
  refusesToCompile(R"_({"pattern":"(?=x)"})_");
  refusesToCompile(R"({"$ref":"#/components/schemas/Missing"})");
  refusesToCompile(R"({"$ref":"other.json"})");
  refusesToCompile(R"({"$ref":"#/components/schemas/A","default":1})", R"({"A":{}})");
  refusesToCompile(R"({"$ref":"#/components/schemas/A"})", R"({"A":{"$ref":"#/components/schemas/A"}})");
  // Annotations are understood: they mean nothing to a check.
  CHECK(Schema(R"({"description":"d","title":"t","examples":[1],"$comment":"c","deprecated":true,"x-any":1})")
            .accepts("1"));
}

TEST_CASE("check: types", "[schema]") {
  const std::vector<std::pair<std::string, Strings>> table = {
      {"null", {"null"}},
      {"boolean", {"true", "false"}},
      {"integer", {"0", "-5", "5.0", "1e3", "9223372036854775807"}},
      {"number", {"0", "-5", "5.0", "1.5", "1e300"}},
      {"string", {"\"\"", "\"x\""}},
      {"array", {"[]", "[1]"}},
      {"object", {"{}", R"({"a":1})"}},
  };
  for (const auto& [type, good] : table) {
    const Schema schema(R"({"type":")" + type + "\"}");
    for (const auto& [other, values] : table) {
      for (const std::string& value : values) {
        INFO(type << " " << value);
        const bool numbers = type == "number" && other == "integer";
        const bool integral = type == "integer" && other == "number" && value != "1.5" && value != "1e300";
        CHECK(schema.accepts(value) == (type == other || numbers || integral));
      }
    }
  }
  CHECK(Schema(R"({"type":["string","null"]})").accepts("null"));
  CHECK_FALSE(Schema(R"({"type":["string","null"]})").accepts("1"));
  CHECK(Schema("{}").accepts("[1,{}]"));
}

TEST_CASE("check: 5.0 is the integer 5, wherever an integer may stand", "[schema]") {
  CHECK(Schema(R"({"type":"integer"})")("5.0").value.dump() == "5");
  CHECK(Schema(R"({"type":"integer"})")("-0.0").value.dump() == "0");
  CHECK(Schema(R"({"type":"integer","enum":[5]})")("5.0").value.dump() == "5");
  CHECK(Schema(R"({"const":5})").accepts("5.0"));
  CHECK(Schema(R"({"type":"array","items":{"type":"integer"}})")("[1.0,2]").value.dump() == "[1,2]");
  CHECK(Schema(R"({"oneOf":[{"type":"string"},{"type":"integer"}]})")("5.0").value.dump() == "5");
  CHECK(Schema(R"({"anyOf":[{"type":"integer","maximum":3},{"type":"integer","minimum":4}]})")("5.0").value.dump() ==
        "5");
  CHECK(Schema(R"({"type":"number"})")("5.5").value.dump() == "5.5");
  CHECK_FALSE(Schema(R"({"oneOf":[{"type":"string"},{"type":"integer"}]})").accepts("5.5"));
  // What a double no longer holds exactly is no integer that was meant.
  CHECK_FALSE(Schema(R"({"type":"integer"})").accepts("1e17"));
  CHECK_FALSE(Schema(R"({"type":"integer"})").accepts("18446744073709551615"));
}

TEST_CASE("check: bounds hold at the bound", "[schema]") {
  const Schema range(R"({"type":"integer","minimum":1,"maximum":2147483647})");
  CHECK_FALSE(range.accepts("0"));
  CHECK(range.accepts("1"));
  CHECK(range.accepts("2147483647"));
  CHECK_FALSE(range.accepts("2147483648"));
  const Schema above(R"({"type":"number","exclusiveMinimum":0})");
  CHECK_FALSE(above.accepts("0"));
  CHECK(above.accepts("0.001"));
  const Schema length(R"({"type":"string","minLength":2,"maxLength":3})");
  CHECK_FALSE(length.accepts("\"é\""));  // characters, not bytes
  CHECK(length.accepts("\"éé\""));
  CHECK(length.accepts("\"\xF0\x9F\x98\x80\xF0\x9F\x98\x80\xF0\x9F\x98\x80\""));
  CHECK_FALSE(length.accepts("\"abcd\""));
  const Schema items(R"({"type":"array","minItems":1,"maxItems":2})");
  CHECK_FALSE(items.accepts("[]"));
  CHECK(items.accepts("[1,2]"));
  CHECK_FALSE(items.accepts("[1,2,3]"));
  const Schema members(R"({"type":"object","minProperties":1,"maxProperties":1})");
  CHECK_FALSE(members.accepts("{}"));
  CHECK(members.accepts(R"({"a":1})"));
  CHECK_FALSE(members.accepts(R"({"a":1,"b":1})"));
}

TEST_CASE("check: patterns see the whole text", "[schema]") {
  const Schema key(R"({"type":"string","pattern":"^[0-9a-f]{4}$"})");
  CHECK(key.accepts("\"09af\""));
  CHECK_FALSE(key.accepts("\"09aF\""));
  CHECK_FALSE(key.accepts("\"09af0\""));
  CHECK_FALSE(key.accepts(R"("09af\n")"));
  CHECK_FALSE(key.accepts(R"("x\n09af")"));
  CHECK_FALSE(key.accepts(R"("09af\u0000")"));
  CHECK(Schema(R"({"pattern":"b"})").accepts("\"abc\""));
}

TEST_CASE("check: enum, const and unions", "[schema]") {
  const Schema choice(R"({"enum":["a",1,null,{"k":[1]}]})");
  for (const char* good : {"\"a\"", "1", "null", R"({"k":[1]})"}) {
    CHECK(choice.accepts(good));
  }
  for (const char* bad : {"\"A\"", "2", "false", R"({"k":[2]})", "[]", "\"1\""}) {
    CHECK_FALSE(choice.accepts(bad));
  }
  const Schema grade(R"({"oneOf":[
    {"type":"object","properties":{"g":{"const":"full"}},"required":["g"],"additionalProperties":false},
    {"type":"object","properties":{"g":{"const":"part"},"gaps":{"type":"array"}},"required":["g","gaps"],"additionalProperties":false}]})");
  CHECK(grade.accepts(R"({"g":"full"})"));
  CHECK(grade.accepts(R"({"g":"part","gaps":[]})"));
  CHECK_FALSE(grade.accepts(R"({"g":"part"})"));
  CHECK_FALSE(grade.accepts(R"({"g":"full","gaps":[]})"));
  CHECK_FALSE(Schema(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})").accepts("1"));
  CHECK(Schema(R"({"anyOf":[{"type":"integer"},{"type":"number"}]})").accepts("1"));
}

TEST_CASE("check: a form that does not fit leaves no default behind", "[schema]") {
  const Schema schema(R"({"oneOf":[
    {"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string","default":"wrong"}},"required":["a"]},
    {"type":"object","properties":{"c":{"type":"integer"},"d":{"type":"string","default":"right"}},"required":["c"]}]})");
  CHECK(schema(R"({"c":1})").value == Json::parse(R"({"c":1,"d":"right"})"));
}

TEST_CASE("check: schemas may refer to each other and to themselves", "[schema]") {
  const Schema tree(R"({"$ref":"#/components/schemas/Tree"})",
                    R"({"Tree":{"type":"object","properties":{"next":{"$ref":"#/components/schemas/Tree"},
                        "leaf":{"$ref":"#/components/schemas/Leaf"}},"additionalProperties":false},
                        "Leaf":{"type":"integer","default":3}})");
  CHECK(tree(R"({"next":{"next":{"leaf":4}}})").value ==
        Json::parse(R"({"leaf":3,"next":{"leaf":3,"next":{"leaf":4}}})"));
  CHECK(tree(R"({"next":{"next":{"leaf":"x"}}})").issues == Strings{"next.next.leaf: must be an integer"});
}

TEST_CASE("check: at most 32 issues, however many faults", "[schema]") {
  const Schema closed(
      R"({"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}},"additionalProperties":false})");
  std::string unknown = "{";
  std::string items = R"({"a":[)";
  for (int i = 0; i < 1000; ++i) {
    unknown += (i == 0 ? "\"u" : ",\"u") + std::to_string(i) + "\":1";
    items += i == 0 ? "1" : ",1";
  }
  CHECK(closed(unknown + "}").issues.size() == 32);
  CHECK(closed(items + "]}").issues.size() == 32);
  const Schema unions(R"({"oneOf":[{"type":"object","properties":{"x":{}},"additionalProperties":false},
                                   {"type":"object","properties":{"y":{}},"additionalProperties":false}]})");
  CHECK(unions(unknown + "}").issues.size() == 32);
}

TEST_CASE("params: every fault under its path", "[params]") {
  CHECK(pathsOf("session.run", Json::object()) == Strings{"command", "handle"});
  CHECK(pathsOf("session.run", run(Json::object())) == Strings{"command.executable"});
  CHECK(pathsOf("session.run", run({{"executable", "x"}, {"args", {1, "b", nullptr}}})) ==
        Strings{"command.args.0", "command.args.2"});
  CHECK(pathsOf("session.run", run({{"executable", "x"}, {"environment", {{"A", "1"}, {"B", 2}}}})) ==
        Strings{"command.environment.B"});
  CHECK(pathsOf("session.run", run({{"executable", ""}, {"timeoutMs", 0}, {"shell", true}})) ==
        Strings{"command.executable", "command.shell", "command.timeoutMs"});
  CHECK(pathsOf("session.run", run("x")) == Strings{"command"});
  CHECK(pathsOf("backend.prewarm", {{"template", "t"}, {"files", {{"a/b.txt", 1}, {"c", {{"base64", 2}}}}}}) ==
        Strings{"files.a/b.txt", "files.c.base64"});
  CHECK(pathsOf("session.setNetworkPolicy", {{"handle", "h1"}, {"network", {{"allow", {{{"origin", 1}}}}}}}) ==
        Strings{"network.allow.0.origin"});
  CHECK(pathsOf("session.setNetworkPolicy", {{"handle", "h1"}, {"network", "deny"}}) == Strings{"network"});
  CHECK(pathsOf("initialize", {{"backend", {{"maxConcurrentCommands", 1025}}}}) ==
        Strings{"backend.maxConcurrentCommands"});
  CHECK(pathsOf("rpc.discover", {{"x", 1}}) == Strings{"x"});
}

TEST_CASE("params: the error says what and where", "[params]") {
  using Issue = std::pair<std::string, std::string>;
  CHECK(issuesOf("handle.stop", Json::object()) == std::vector<Issue>{{"handle", "is required"}});
  CHECK(issuesOf("handle.stop", {{"handle", 1}}) == std::vector<Issue>{{"handle", "must be a string"}});
  CHECK(issuesOf("handle.stop", {{"handle", "h"}, {"x", 1}}) == std::vector<Issue>{{"x", "is not known here"}});
  const auto checked = checkParams("handle.stop", Json::object());
  CHECK(checked.error().message.find("handle.stop") != std::string::npos);
  CHECK(checked.error().message.find("handle is required") != std::string::npos);
}

TEST_CASE("params: by position is refused, none is an empty object", "[params]") {
  CHECK(pathsOf("handle.stop", Json::array({"h1"})) == Strings{""});
  CHECK(pathsOf("rpc.discover", Json::array()) == Strings{""});
  const auto byPosition = OpenRpc::instance().checkParams("handle.stop", boost::json::array{"h1"});
  CHECK(byPosition.error().message ==
        "The parameters of handle.stop do not fit: params must be an object: parameters go by name");
  CHECK(filled("rpc.discover", nullptr) == Json::object());
  CHECK(filled("shutdown", Json::object()) == Json::object());
  CHECK(pathsOf("handle.stop", nullptr) == Strings{"handle"});
}

TEST_CASE("params: defaults are filled in where they are missing", "[params]") {
  CHECK(filled("session.run", run({{"executable", "x"}})) == Json::parse(R"({
    "handle":"h1","encoding":"utf8",
    "command":{"executable":"x","args":[],"cwd":".","environment":{},"timeoutMs":30000,"maxOutputBytes":1048576}})"));
  CHECK(filled("session.spawn", run({{"executable", "x"}, {"cwd", "d"}, {"timeoutMs", 5.0}}))["command"] ==
        Json::parse(R"({
    "executable":"x","args":[],"cwd":"d","environment":{},"timeoutMs":5,"maxOutputBytes":1048576})"));
  CHECK(filled("session.spawn", run({{"executable", "x"}}))["stream"] == false);
  const Json given = run({{"executable", "x"},
                          {"args", {"a"}},
                          {"cwd", "."},
                          {"environment", {{"A", "b"}}},
                          {"timeoutMs", 1},
                          {"maxOutputBytes", 1}});
  Json expected = given;
  expected["encoding"] = "utf8";
  CHECK(filled("session.run", given) == expected);
  const Json create = {{"template", {{"template", "t"}}},
                       {"network", {{"allow", {{{"origin", "https://a"}}}}}},
                       {"resources", Json::object()}};
  const Json made = filled("backend.create", create);
  CHECK(made["resources"] == Json{{"tmpBytes", 268435456}});
  CHECK(made["network"]["allow"][0]["reflection"] == "redact");
  CHECK(made["template"] == Json{{"template", "t"}});
  CHECK_FALSE(made.contains("state"));
}

TEST_CASE("params: 5.0 is an integer for a handler", "[params]") {
  const Json made = filled("session.run", run({{"executable", "x"}, {"timeoutMs", 5.0}}));
  CHECK(made["command"]["timeoutMs"].is_number_integer());
  CHECK(pathsOf("session.run", run({{"executable", "x"}, {"timeoutMs", 5.5}})) == Strings{"command.timeoutMs"});
  CHECK(filled("initialize", {{"protocolVersion", 1.0}})["protocolVersion"].is_number_integer());
}

TEST_CASE("params: a method without a schema is a fault of the program", "[params]") {
  CHECK_FALSE(OpenRpc::instance().hasMethod("no.such"));
  CHECK(OpenRpc::instance().hasMethod("session.run"));
  CHECK_THROWS_AS(checkParams("no.such", Json::object()), std::logic_error);
}

}  // namespace stitchkit
