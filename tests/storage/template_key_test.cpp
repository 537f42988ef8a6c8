#include "backend/storage/template_key.h"

#include "backend/storage/json_text.h"
#include "rpc/base/base64.h"
#include "rpc/base/sha256.h"
#include "tests/codingtools/test_files.h"

#include <nlohmann/json.hpp>

using namespace stitchkit;
using namespace stitchkit::test;
using nlohmann::json;

namespace {

std::string content(const json& value) {
  const json& bytes = value.contains("$bytes") ? value.at("$bytes") : value;
  if (bytes.contains("text")) {
    return bytes["text"];
  }
  if (bytes.contains("base64")) {
    return decodeBase64(bytes["base64"].get<std::string>()).value();
  }
  std::string text;
  for (int count = bytes.at("repeat").at(1); count > 0; --count) {
    text += bytes["repeat"][0].get<std::string>();
  }
  return text + bytes["repeat"][2].get<std::string>();
}

std::vector<TemplateFile> filesOf(const json& op) {
  std::vector<TemplateFile> files;
  const json given = op.value("files", json::object());
  for (const auto& [path, value] : given.items()) {
    files.push_back({path, value.is_string() ? decodeBase64(value.get<std::string>()).value() : content(value)});
  }
  return files;
}

Result<std::string> keyOf(const std::string& backend, const std::string& name, const std::vector<TemplateFile>& files) {
  const Result<TemplateFiles> arranged = arrangeTemplate(files);
  return arranged ? Result<std::string>(templateKey(backend, name, *arranged)) : Result<std::string>(arranged.error());
}

}  // namespace

TEST_CASE("the golden template keys hold") {
  std::ifstream lines(std::string(TEST_DATA) + "/template-keys.jsonl");
  int checked = 0;
  for (std::string line; std::getline(lines, line); ++checked) {
    const json entry = json::parse(line);
    INFO(line);
    CHECK(keyOf(entry["name"], entry["template"], filesOf(entry)).value() == entry["templateKey"].get<std::string>());
    CHECK(sha256Hex(entry["name"].get<std::string>()) == entry["namespaceDirectory"].get<std::string>());
  }
  CHECK(checked == 6);
}

TEST_CASE("the golden prewarm cases hold, but for the reference's faults") {
  std::ifstream lines(std::string(TEST_DATA) + "/prewarm.jsonl");
  int keys = 0;
  int refusals = 0;
  for (std::string line; std::getline(lines, line);) {
    const json entry = json::parse(line);
    const std::string backend = entry.value("backend", json::object()).value("name", "bubblewrap");
    for (std::size_t index = 0; index < entry["ops"].size(); ++index) {
      const json& op = entry["ops"][index];
      if (op["op"] != "prewarm" || entry.value("suspect", false) || backend.empty()) {
        continue;
      }
      INFO(entry["id"]);
      const json& expected = entry["expect"]["ops"][index];
      const Result<std::string> key = keyOf(backend, op["template"], filesOf(op));
      if (expected.contains("ok")) {
        REQUIRE(key.has_value());
        CHECK(*key == expected["ok"]["templateKey"].get<std::string>());
        ++keys;
      } else {
        REQUIRE(key.has_error());
        CHECK(key.error().kind == ErrorKind::kPath);
        CHECK_FALSE(key.error().hint.empty());
        ++refusals;
      }
    }
  }
  CHECK(keys >= 18);
  CHECK(refusals >= 8);
}

TEST_CASE("one set of files has one key, also when names collate as equal") {
  const TemplateFile composed{"\u00e9", "1"};
  const TemplateFile decomposed{"e\u0301", "2"};
  CHECK(keyOf("b", "t", {composed, decomposed}).value() == keyOf("b", "t", {decomposed, composed}).value());
}

TEST_CASE("files that contradict each other are refused in words") {
  const auto kindOf = [](const std::vector<TemplateFile>& files) { return keyOf("b", "t", files).error().kind; };
  CHECK(kindOf({{"a.txt", "1"}, {"/workspace/a.txt", "2"}}) == ErrorKind::kValidation);
  CHECK(kindOf({{"a", "1"}, {"a/b", "2"}}) == ErrorKind::kValidation);
  CHECK(kindOf({{"a/b/c", "1"}, {"a", "2"}}) == ErrorKind::kValidation);
  CHECK(kindOf({{".", "1"}}) == ErrorKind::kPath);
  requirePathError(keyOf("b", "t", {{std::string(256, 'a'), "1"}}), "ENAMETOOLONG");
  CHECK(keyOf("b", "t", {{"a", "1"}, {"ab", "2"}, {"a.b/c", "3"}}).has_value());
}

TEST_CASE("strings are written as JSON.stringify writes them") {
  static constexpr char kText[] = "\0\x01\b\t\n\x0b\f\r\x1f \"\\/\x7f\u00e9\u2028\U0001F600";
  const std::string given(kText, sizeof kText - 1);
  std::string text;
  appendJsonString(text, given);
  CHECK(text == "\"\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f \\\"\\\\/\x7f\u00e9\u2028\U0001F600\"");
  CHECK(json::parse(text).get<std::string>() == given);
}
