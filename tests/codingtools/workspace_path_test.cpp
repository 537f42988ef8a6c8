#include "codingtools/workspace_path.h"

#include "tests/codingtools/golden_text.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

using namespace stitchkit;
using namespace stitchkit::test;

TEST_CASE("the golden table of paths holds") {
  std::ifstream lines(std::string(TEST_DATA) + "/paths.jsonl");
  int checked = 0;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json entry = nlohmann::json::parse(line);
    for (std::size_t index = 0; index < entry["ops"].size(); ++index) {
      const nlohmann::json& op = entry["ops"][index];
      const nlohmann::json& expected = entry["expect"]["ops"][index];
      if (op["op"] != "session") {
        continue;
      }
      const nlohmann::json& argument = op["args"][0];
      const std::string text = expand(argument.is_object() && argument.contains("cwd") ? argument["cwd"] : argument);
      INFO(entry["id"] << " " << text);
      const Result<WorkspacePath> path = WorkspacePath::parse(text);
      if (expected.contains("error")) {
        REQUIRE(path.has_error());
        CHECK(path.error().kind == ErrorKind::kPath);
        CHECK_FALSE(path.error().hint.empty());
      } else if (expected["ok"].is_string()) {
        REQUIRE(path.has_value());
        CHECK(path->canonical() == expected["ok"].get<std::string>());
      } else {
        REQUIRE(path.has_value());
        const nlohmann::json& parts = expected["ok"]["$text"];
        CHECK(path->canonical().size() == parts["bytes"].get<std::size_t>());
      }
      ++checked;
    }
  }
  CHECK(checked > 60);
}

TEST_CASE("a path has parts") {
  const WorkspacePath path = WorkspacePath::parse("/workspace/a/b/c.txt").value();
  CHECK(path.relative() == "a/b/c.txt");
  CHECK(path.name() == "c.txt");
  CHECK(path.parent().canonical() == "/workspace/a/b");
  CHECK(path.parent().parent().parent() == WorkspacePath::root());
  CHECK(WorkspacePath::root().parent().isRoot());
  CHECK(WorkspacePath::root().name().empty());
  CHECK(WorkspacePath::parse(".").value() == WorkspacePath::parse("/workspace").value());
}

TEST_CASE("a path that no kernel takes can be named") {
  const auto tooLong = [](const std::string& text) { return WorkspacePath::parse(text).value().tooLong(); };
  CHECK_FALSE(tooLong(std::string(255, 'a')));
  CHECK(tooLong(std::string(256, 'a')));
  CHECK(tooLong("x/" + std::string(256, 'a') + "/y"));
  std::string deep = "d";
  while (deep.size() < 4084 - 1) {
    deep += "/d";
  }
  CHECK(WorkspacePath::parse(deep).value().canonical().size() == 4094);
  CHECK_FALSE(tooLong(deep));
  CHECK(tooLong(deep + "/d"));
}
