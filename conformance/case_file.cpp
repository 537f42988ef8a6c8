#include "conformance/case_file.h"

#include <algorithm>
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

std::optional<Case> makeCase(const std::string& file, const Json& from, const Json& setups, std::string& problem) {
  Case made;
  made.file = file;
  made.name = from.at("name").get<std::string>();
  made.about = from.at("about").get<std::string>();
  made.args = from.value("args", std::vector<std::string>());
  made.framing = from.value("framing", "lines") == "headers" ? Framing::kHeaders : Framing::kLines;
  made.backendName = from.value("backendName", "bubblewrap");
  const Json setup = from.value("setup", Json::array());
  if (setup.is_string() && !setups.contains(setup.get<std::string>())) {
    problem = file + ": " + made.name + ": there is no set-up " + setup.dump();
    return std::nullopt;
  }
  for (const auto& part : {setup.is_string() ? setups.at(setup.get<std::string>()) : setup, from.at("steps")}) {
    made.steps.insert(made.steps.end(), part.begin(), part.end());
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
      auto made = makeCase(file, from, *setups, problem);
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
