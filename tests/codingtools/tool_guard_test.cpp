#include "codingtools/tool_guard.h"

#include "codingtools/tool_path.h"
#include "tests/codingtools/answering_host.h"

#include <catch2/catch.hpp>

#include <string>

using namespace stitchkit;
using Host = stitchkit::test::AnsweringHost;

namespace {

namespace json = boost::json;

GuardRules askAll() {
  GuardRules rules;
  rules.operations = GuardRules::Operations::kAskHost;
  rules.askAboutPaths = true;
  return rules;
}

WorkspacePath toolPath(const char* text) {
  return parseToolPath(text, RootPath::kAllowed, 4096).value();
}

}  // namespace

TEST_CASE("an operation is what the host says it is") {
  for (const bool word : {true, false}) {
    Host host([&](const std::string&, const json::object&) { return json::value{{"allowed", word}}; });
    const ToolGuard guard(host.requests, "t1", askAll());
    const Result<void> answer = guard.authorize({{"operation", "read"}, {"path", "a"}}, {});
    CHECK(answer.has_value() == word);
    CHECK(host.asked ==
          std::vector<std::string>{R"(host.authorize{"toolset":"t1","request":{"operation":"read","path":"a"}})"});
    if (!answer) {
      CHECK(answer.error().kind == ErrorKind::kForbidden);
      CHECK(answer.error().details.empty());
    }
  }
}

TEST_CASE("whatever is no clear yes of the host is a no") {
  const std::vector<Result<json::value>> answers{Error(ErrorKind::kInternal, "host error"),
                                                 Error(ErrorKind::kUnavailable, "late"),
                                                 json::value(),
                                                 json::value(true),
                                                 json::value{{"allowed", 1}},
                                                 json::value{{"allowed", "true"}},
                                                 json::object{},
                                                 json::value{{"allowed", json::array{}}},
                                                 json::value{{"allowed", {true, true}}},
                                                 json::value{{"allowed", {1}}}};
  for (const Result<json::value>& answer : answers) {
    Host host([&](const std::string&, const json::object&) { return answer; });
    ToolGuard guard(host.requests, "t1", askAll());
    CHECK(guard.authorize({{"operation", "read"}}, {}).error().kind == ErrorKind::kForbidden);
    CHECK(guard.checkPath(toolPath("a"), {}).error().kind == ErrorKind::kForbidden);
    CHECK(guard.allowed({"a"}, {}).error().kind == ErrorKind::kForbidden);
  }
}

TEST_CASE("without the host nothing is asked") {
  Host host([](const std::string&, const json::object&) { return json::value(); });
  GuardRules rules;
  CHECK(ToolGuard(host.requests, "t1", rules).authorize({}, {}).error().kind == ErrorKind::kForbidden);
  rules.operations = GuardRules::Operations::kAllow;
  ToolGuard guard(host.requests, "t1", rules);
  CHECK(guard.authorize({}, {}).has_value());
  CHECK(guard.checkPath(toolPath("a/b"), {}).has_value());
  CHECK(guard.allowsEveryPath());
  CHECK(host.asked.empty());
}

TEST_CASE("a path is asked about from the outside inwards, and nothing below a denied one") {
  Host host([](const std::string&, const json::object& params) {
    json::array answers;
    for (const json::value& path : params.at("paths").as_array()) {
      answers.emplace_back(path != "a/b");
    }
    return json::value{{"allowed", answers}};
  });
  ToolGuard guard(host.requests, "t1", askAll());
  const Error denied = guard.checkPath(toolPath("a/b/c"), {}).error();
  CHECK(std::get<std::string>(denied.details.front().second) == "a/b");
  CHECK(host.asked.size() == 2);
  CHECK(guard.checkPath(toolPath("."), {}).has_value());
  CHECK(host.asked.back() == R"(host.authorizePaths{"toolset":"t1","paths":["."]})");
  CHECK(guard.checkPath(toolPath("x/y"), {}).has_value());
  CHECK(host.asked.size() == 5);
  CHECK(guard.allowed({"x", "a/b", "y"}, {}).value() == std::vector<bool>{true, false, true});
  CHECK(host.asked.size() == 6);
}

TEST_CASE("denied globs need no host, and a directory denies what is below") {
  Host host([](const std::string&, const json::object& params) {
    return json::value{{"allowed", json::array(params.at("paths").as_array().size(), true)}};
  });
  GuardRules rules = askAll();
  rules.denied = {GlobPattern::compile("**/.env").value(), GlobPattern::compile("secret").value()};
  ToolGuard guard(host.requests, "t1", rules);
  CHECK(guard.allowed({".env", "a/.env", "secret", "secret/x/y", "secrets", "a"}, {}).value() ==
        std::vector<bool>{false, false, false, false, true, true});
  CHECK(host.asked.back() == R"(host.authorizePaths{"toolset":"t1","paths":["secrets","a"]})");
  CHECK(std::get<std::string>(guard.checkPath(toolPath("secret/x"), {}).error().details.front().second) == "secret");
  CHECK(host.asked.size() == 1);
}
