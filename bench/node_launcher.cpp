#include "bench/node_launcher.h"

#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <sstream>

namespace stitchkit::bench {

namespace {

std::string findNode() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = folder + "/node";
    if (folder.starts_with('/') && access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return "";
}

}  // namespace

std::unique_ptr<NodeLauncher> NodeLauncher::find(const std::filesystem::path& script,
                                                 const std::vector<std::string>& profile) {
  const std::string node = findNode();
  return node.empty() ? nullptr : std::unique_ptr<NodeLauncher>(new NodeLauncher(node, script, profile));
}

NodeLauncher::NodeLauncher(const std::string& node, const std::filesystem::path& script,
                           const std::vector<std::string>& profile)
    : channel_(Transport::kPipes),
      child_({node, script, nlohmann::json(profile).dump()}, channel_.childInput(), channel_.childOutput(),
             STDERR_FILENO) {
  channel_.closeChildEnds();
}

double NodeLauncher::run(const std::string& action) {
  channel_.send(action + '\n');
  return nlohmann::json::parse(channel_.receive()).at("milliseconds").get<double>() / 1e3;
}

}  // namespace stitchkit::bench
