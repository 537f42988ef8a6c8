#include "codingtools/file_tools.h"

#include "rpc/base/base64.h"
#include "rpc/base/sha256.h"
#include "rpc/wire_error.h"
#include "tests/codingtools/answering_host.h"
#include "tests/codingtools/golden_text.h"
#include "tests/codingtools/test_files.h"

#include <nlohmann/json.hpp>

#include <fstream>

using namespace stitchkit;
using namespace stitchkit::test;

namespace {

using Json = nlohmann::json;

/// A member's own members; none when it is missing. The object has to live on.
auto members(const Json& object, const char* name) {
  static const Json none = Json::object();
  return (object.contains(name) ? object[name] : none).items();
}

std::string bytesOf(const Json& file) {
  if (file.is_object() && file.contains("text")) {
    return file["text"].get<std::string>();
  }
  if (file.is_object() && file.contains("base64")) {
    return decodeBase64(file["base64"].get<std::string>()).value();
  }
  return expand(file);
}

/// {ROOT} is where a guest sees the workspace.
std::string rooted(std::string text, const std::string& root) {
  for (std::size_t at = text.find("{ROOT}"); at != std::string::npos; at = text.find("{ROOT}")) {
    text.replace(at, 6, root);
  }
  return text;
}

/// One golden case: its tree, its host, and the outcome of its call as JSON.
class GoldenCase {
 public:
  explicit GoldenCase(const Json& wanted) : case_(wanted) {
    build(case_.contains("tree") ? case_["tree"] : Json::object());
    const Json config = case_.value("config", Json::object());
    rules_.operations = GuardRules::Operations::kAskHost;
    rules_.askAboutPaths = config.contains("paths");
    const Json limits = config.value("limits", Json::object());
    limits_.maxPathBytes = limits.value("maxPathBytes", limits_.maxPathBytes);
    limits_.maxReadBytes = limits.value("maxReadBytes", limits_.maxReadBytes);
    limits_.maxWriteBytes = limits.value("maxWriteBytes", limits_.maxWriteBytes);
  }

  Json run() {
    ToolGuard guard(host_.requests, "t1", rules_);
    const ToolContext context{directory_,           files_,  guard,     locks_, digests_, searches_, limits_,
                              kExcludedDirectories, nullptr, replaced_, {}};
    const Json& input = case_["input"];
    const std::string path = rooted(expand(input["path"]), "/workspace");
    if (case_["tool"] == "read_file") {
      return outcome(readFile(context, {path, input.value("offset", std::uint64_t{0}), optional(input, "maxBytes")}));
    }
    if (case_["tool"] == "write_file") {
      return outcome(writeFile(context, {path, expand(input["content"]), input.value("overwrite", false)}));
    }
    EditFileInput edit{path, input["oldText"], input["newText"], input.value("replaceAll", false), {}, false};
    if (input.contains("expectedSha256")) {
      edit.expectedSha256 = input["expectedSha256"].get<std::string>();
    }
    edit.dryRun = input.value("dryRun", false);
    return outcome(editFile(context, edit));
  }

  /// What the host was asked, as golden writes it down.
  [[nodiscard]] Json asked(const std::string& method, const std::string& member) const {
    Json all = Json::array();
    for (const std::string& line : host_.asked) {
      if (line.rfind(method + "{", 0) == 0) {
        Json value = Json::parse(line.substr(method.size()))[member];
        value.is_array() ? void(all.insert(all.end(), value.begin(), value.end())) : all.push_back(std::move(value));
      }
    }
    return all;
  }

  [[nodiscard]] const Workspace& workspace() const { return workspace_; }

 private:
  void build(const Json& tree) {
    for (const auto& [name, target] : members(tree, "dirs")) {
      std::filesystem::create_directories(workspace_ / target.get<std::string>());
    }
    for (const auto& [name, file] : members(tree, "files")) {
      std::filesystem::create_directories(std::filesystem::path(workspace_ / name).parent_path());
      writeText(workspace_ / name, bytesOf(file));
      const std::string mode = file.is_object() ? file.value("mode", "0644") : "0644";
      REQUIRE(::chmod((workspace_ / name).c_str(), static_cast<mode_t>(std::stoul(mode, nullptr, 8))) == 0);
    }
    for (const auto& [name, target] : members(tree, "symlinks")) {
      std::filesystem::create_symlink(rooted(target, workspace_.path), workspace_ / name);
    }
    for (const auto& [name, target] : members(tree, "hardlinks")) {
      std::filesystem::create_hard_link(workspace_ / target.get<std::string>(), workspace_ / name);
    }
    for (const auto& [index, name] : members(tree, "fifos")) {
      REQUIRE(::mkfifo((workspace_ / name.get<std::string>()).c_str(), 0644) == 0);
    }
  }

  Result<boost::json::value> answer(const std::string& method, const boost::json::object& params) const {
    const Json config = case_.value("config", Json::object());
    if (method == "host.authorize") {
      return boost::json::value{{"allowed", config.value("authorize", "") != "deny"}};
    }
    boost::json::array answers;
    for (const boost::json::value& path : params.at("paths").as_array()) {
      answers.emplace_back(allows(config["paths"], path.as_string().c_str()));
    }
    return boost::json::value{{"allowed", std::move(answers)}};
  }

  static bool allows(const Json& policy, const std::string& path) {
    const auto fits = [&](const Json& rules) {
      return std::any_of(rules.begin(), rules.end(), [&](const Json& rule) {
        return rule.contains("exact") ? rule["exact"] == path : path.rfind(rule["prefix"].get<std::string>(), 0) == 0;
      });
    };
    return policy.contains("deny") ? !fits(policy["deny"]) : fits(policy["allowOnly"]);
  }

  static std::optional<std::size_t> optional(const Json& input, const char* name) {
    return input.contains(name) ? std::optional(input[name].get<std::size_t>()) : std::nullopt;
  }

  template <class T>
  static Json outcome(const Result<T>& result) {
    if (result) {
      return {{"ok", toJson(*result)}};
    }
    const Json data = Json::parse(boost::json::serialize(toWireError(result.error())))["data"];
    return {{"error",
             {{"code", data["code"]},
              {"details", data.value("details", Json::object())},
              {"hint", data.contains("hint")}}}};
  }

  static Json toJson(const ReadFileOutput& output) {
    Json json{{"path", output.path},
              {"text", output.text},
              {"bytes", output.bytes},
              {"sha256", output.sha256.value()},
              {"truncated", output.truncated}};
    if (output.nextOffset) {
      json["nextOffset"] = *output.nextOffset;
    }
    return json;
  }
  static Json toJson(const WriteFileOutput& output) {
    return {{"path", output.path}, {"bytes", output.bytes}, {"createdDirectories", output.createdDirectories}};
  }
  static Json toJson(const EditFileOutput& output) {
    return {{"path", output.path},     {"baseSha256", output.baseSha256},
            {"sha256", output.sha256}, {"replacements", output.replacements},
            {"bytes", output.bytes},   {"applied", output.applied}};
  }

  Json case_;
  Workspace workspace_;
  ContainedDirectory directory_ = workspace_.open();
  StagingDirectory staging_{UniqueFd(::open(workspace_.stagingPath.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC))};
  ToolFiles files_{directory_, staging_};
  GuardRules rules_;
  FileLocks locks_;
  FileDigests digests_;
  Slots searches_{1};
  std::vector<ReplacedFile> replaced_;
  ToolLimits limits_;
  AnsweringHost host_{
      [this](const std::string& method, const boost::json::object& params) { return answer(method, params); }};
};

/// Golden writes long texts as a digest.
void checkValue(const Json& actual, const Json& expected) {
  if (expected.is_object() && expected.contains("$text")) {
    CHECK(sha256Hex(actual.get<std::string>()) == expected["$text"]["sha256"]);
    return;
  }
  CHECK(actual == expected);
}

void checkMembers(const Json& actual, const Json& expected) {
  CHECK(actual.size() == expected.size());
  for (const auto& [name, value] : expected.items()) {
    CAPTURE(name);
    REQUIRE(actual.contains(name));
    checkValue(actual[name], value);
  }
}

void checkChanges(const Workspace& workspace, const Json& changes) {
  for (const char* kind : {"added", "modified"}) {
    for (const auto& [path, file] : members(changes, kind)) {
      CAPTURE(path);
      CHECK(modeOf(workspace / path) == std::stoul(file["mode"].get<std::string>(), nullptr, 8));
      if (file["kind"] == "file") {
        CHECK(sha256Hex(readText(workspace / path)) == file["sha256"]);
      }
    }
  }
  CHECK(std::filesystem::is_empty(workspace.stagingPath));
}

}  // namespace

TEST_CASE("read_file, write_file and edit_file do what the golden cases say") {
  std::ifstream lines(std::string(TEST_DATA) + "/file_tools.jsonl");
  int checked = 0;
  for (std::string line; std::getline(lines, line); ++checked) {
    const Json wanted = Json::parse(line);
    INFO(wanted["id"]);
    GoldenCase golden(wanted);
    const Json outcome = golden.run();
    INFO(outcome.dump().substr(0, 400));
    const Json& expected = wanted["expect"];
    if (expected.contains("ok")) {
      REQUIRE(outcome.contains("ok"));
      checkMembers(outcome["ok"], expected["ok"]);
    } else {
      REQUIRE(outcome.contains("error"));
      CHECK(outcome["error"]["code"] == expected["error"]["code"]);
      Json details = expected["error"]["details"];
      for (Json& value : details) {
        value = value.is_string() ? Json(rooted(value, "/workspace")) : value;
      }
      checkMembers(outcome["error"]["details"], details);
      CHECK(outcome["error"]["hint"] == expected["error"]["hint"]);
    }
    CHECK(golden.asked("host.authorize", "request") == wanted.value("authorized", Json::array()));
    CHECK(golden.asked("host.authorizePaths", "paths") == wanted.value("pathQueries", Json::array()));
    checkChanges(golden.workspace(), wanted.contains("changes") ? wanted["changes"] : Json::object());
  }
  CHECK(checked > 100);
}
