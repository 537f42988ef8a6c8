#include "conformance/scene.h"

#include "conformance/certificates.h"

namespace conformance {

using Problem = std::optional<std::string>;

Problem Scene::start(const std::string& name, const std::vector<std::string>& arguments, Framing framing,
                     const std::string& backendName) {
  std::vector<std::string> command = command_;
  command.insert(command.end(), arguments.begin(), arguments.end());
  HostFiles files(directory_);
  for (auto& argument : command) {
    if (argument.find("{authority}") != std::string::npos) {
      if (Problem problem = files.makeFile(directory_.authority().string(), authorityPem(), 0644)) {
        return problem;
      }
    }
    argument = files.resolve(argument, backendName, "");
  }
  std::string problem;
  auto process = Process::start(command, problem);
  if (!process) {
    return problem;
  }
  connections_[name] =
      std::make_unique<Connection>(std::move(process), contract_, framing, directory_.state().string());
  return std::nullopt;
}

Connection* Scene::find(const std::string& name) const {
  const auto found = connections_.find(name);
  return found == connections_.end() ? nullptr : found->second.get();
}

Problem Scene::close(Connection& peer, Deadline deadline) {
  peer.process().closeInput();
  if (Problem problem = peer.waitForEnd(deadline)) {
    return problem;
  }
  if (peer.process().ending()->exitCode != 0) {
    return "expected exit code 0 after the end of input";
  }
  return peer.inbox().empty() ? Problem() : Problem("messages came that no step asked for");
}

}  // namespace conformance
