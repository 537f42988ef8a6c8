#include "conformance/case_file.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <sstream>

#include "conformance/contract.h"

namespace conformance {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSetups = "setups.json";

std::vector<fs::path> findFiles(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; at != end; at.increment(error)) {
    if (at->is_regular_file() && at->path().extension() == ".json" && at->path().filename() != kSetups) {
      files.push_back(at->path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// The schema's part for a file of cases ("caseFile") or of set-ups ("setups"), as a schema of its own.
Json partOf(const Json& schema, const std::string& name) {
  Json part = schema;
  part["allOf"] = {{{"$ref", "#/definitions/" + name}}};
  return part;
}

/// Steps after which an implementation is of no use to further cases.
constexpr std::array kEndingSteps = {"sendText",  "sendBase64", "closeInput", "closeOutput",
                                     "expectEnd", "signal",     "restart",    "start"};

/// What keeps a case from sharing its process, or nullopt.
std::optional<std::string> needsOwnProcess(const Json& from, const std::vector<Json>& steps) {
  for (const char* member : {"args", "framing", "backendName"}) {
    if (from.contains(member)) {
      return member;
    }
  }
  for (const auto& step : steps) {
    for (const char* name : kEndingSteps) {
      if (step.contains(name)) {
        return name;
      }
    }
  }
  return std::nullopt;
}

std::optional<Case> makeCase(const std::string& file, const Json& whole, const Json& from, const Json& setups,
                             std::string& problem) {
  Case made;
  made.file = file;
  made.name = from.at("name").get<std::string>();
  made.about = from.value("about", whole.at("about").get<std::string>());
  made.oneProcess = from.value("oneProcess", whole.value("oneProcess", false));
  made.args = from.value("args", std::vector<std::string>());
  made.framing = from.value("framing", "lines") == "headers" ? Framing::kHeaders : Framing::kLines;
  made.backendName = from.value("backendName", "bubblewrap");
  const Json setup = from.value("setup", whole.value("setup", Json::array()));
  if (setup.is_string() && !setups.contains(setup.get<std::string>())) {
    problem = file + ": " + made.name + ": there is no set-up " + setup.dump();
    return std::nullopt;
  }
  for (const auto& part : {setup.is_string() ? setups.at(setup.get<std::string>()) : setup, from.at("steps")}) {
    made.steps.insert(made.steps.end(), part.begin(), part.end());
  }
  const auto obstacle = made.oneProcess ? needsOwnProcess(from, made.steps) : std::nullopt;
  if (obstacle) {
    problem = file + ": " + made.name + ": with oneProcess there can be no " + *obstacle;
    return std::nullopt;
  }
  return made;
}

}  // namespace

std::optional<Json> readJsonFile(const fs::path& path, std::string& problem) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) {
    problem = path.string() + ": cannot be read";
    return std::nullopt;
  }
  auto value = parseStrict(text.str(), problem);
  if (!value) {
    problem = path.string() + ": " + problem;
  }
  return value;
}

std::optional<std::vector<Case>> loadCases(const fs::path& folder, const fs::path& schemaFile, std::string& problem) {
  const auto schema = readJsonFile(schemaFile, problem);
  const auto setups = schema ? readJsonFile(folder / kSetups, problem) : std::nullopt;
  if (!setups) {
    return std::nullopt;
  }
  if (const auto wrong = checkAgainst(partOf(*schema, "setups"), *setups)) {
    problem = std::string(kSetups) + ": " + *wrong;
    return std::nullopt;
  }
  std::vector<Case> cases;
  for (const auto& path : findFiles(folder)) {
    const std::string file = path.lexically_relative(folder).string();
    const auto content = readJsonFile(path, problem);
    if (!content) {
      return std::nullopt;
    }
    if (const auto wrong = checkAgainst(partOf(*schema, "caseFile"), *content)) {
      problem = file + ": " + *wrong;
      return std::nullopt;
    }
    std::set<std::string> names;
    for (const auto& from : content->at("cases")) {
      auto made = makeCase(file, *content, from, *setups, problem);
      if (!made) {
        return std::nullopt;
      }
      if (!names.insert(made->name).second) {
        problem = file + ": two cases are named " + made->name;
        return std::nullopt;
      }
      cases.push_back(std::move(*made));
    }
  }
  return cases;
}

}  // namespace conformance
