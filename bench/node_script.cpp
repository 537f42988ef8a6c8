#include "bench/node_script.h"

#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace stitchkit::bench {

namespace {

constexpr long kOldestNode = 20;

// 0 when the program does not tell, as a wrapper that has nothing to start.
long majorVersion(const std::string& node) {
  LineChannel channel(Transport::kPipes);
  Child child({node, "--version"}, -1, channel.childOutput(), -1);
  channel.closeChildEnds();
  try {
    const std::string version(channel.receive());
    return child.wait() == 0 && version.starts_with('v') ? std::strtol(version.c_str() + 1, nullptr, 10) : 0;
  } catch (const std::runtime_error&) {
    return 0;
  }
}

}  // namespace

std::string findNode() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string candidate = folder + "/node";
    if (folder.starts_with('/') && access(candidate.c_str(), X_OK) == 0 && majorVersion(candidate) >= kOldestNode) {
      return candidate;
    }
  }
  return "";
}

NodeScript::NodeScript(const std::string& node, const std::filesystem::path& script, const nlohmann::json& argument)
    : channel_(Transport::kPipes),
      child_({node, script, argument.dump()}, channel_.childInput(), channel_.childOutput(), STDERR_FILENO) {
  channel_.closeChildEnds();
}

double NodeScript::run(const std::string& action) {
  channel_.send(action + '\n');
  return nlohmann::json::parse(channel_.receive()).at("milliseconds").get<double>() / 1e3;
}

Measurement NodeScript::running(const std::string& action) {
  return [this, action] { return run(action); };
}

void NodeScript::end() {
  channel_.closeInput();
  if (const int code = child_.wait(); code != 0) {
    throw std::runtime_error("the script exited with " + std::to_string(code));
  }
}

}  // namespace stitchkit::bench
