// Case files: found, checked against their schema, and split into cases.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "conformance/framing.h"
#include "conformance/json_text.h"

namespace conformance {

struct Case {
  std::string file;  ///< relative to the folder of cases
  std::string name;
  std::string about;
  std::vector<std::string> args;  ///< put behind the command line
  Framing framing = Framing::kLines;
  std::string backendName;  ///< decides where workspaces are found
  bool oneProcess = false;  ///< shares an implementation with the other cases that say so
  std::vector<Json> steps;  ///< the set-up's first
};

/// All cases of the *.json below `folder`, in the order of the files' paths. `setups.json` there names shared set-ups.
/// On failure nullopt, and `problem` says which file and why.
std::optional<std::vector<Case>> loadCases(const std::filesystem::path& folder, const std::filesystem::path& schemaFile,
                                           std::string& problem);

/// Reads and parses one file.
std::optional<Json> readJsonFile(const std::filesystem::path& path, std::string& problem);

}  // namespace conformance
