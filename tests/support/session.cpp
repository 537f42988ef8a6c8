#include "tests/support/session.h"

#include "rpc/base/base64.h"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace stitchkit::testing {

Session::Session(Sidecar& sidecar, Json network) : sidecar_(sidecar) {
  const Json prewarmed = sidecar_.call("backend.prewarm", {{"template", "empty"}});
  const Json created =
      sidecar_.call("backend.create", {{"template", prewarmed.at("templateKey")}, {"network", std::move(network)}});
  handle_ = created.at("handle");
  state_ = created.at("state");
}

Session::Session(Sidecar& sidecar, Json network, Json state) : sidecar_(sidecar) {
  const Json created = sidecar_.call(
      "backend.create",
      {{"template", state.at("templateKey")}, {"network", std::move(network)}, {"state", std::move(state)}});
  handle_ = created.at("handle");
  state_ = created.at("state");
}

Session Session::withResources(Sidecar& sidecar, Json resources) {
  return Session(Created{sidecar.call("backend.create", {{"template", {{"template", "empty"}}},
                                                         {"network", "deny-all"},
                                                         {"resources", std::move(resources)}})},
                 sidecar);
}

Session Session::adopt(Sidecar& sidecar, Json created) {
  return Session(Created{std::move(created)}, sidecar);
}

Session::Session(Created created, Sidecar& sidecar)
    : sidecar_(sidecar), handle_(created.result.at("handle")), state_(created.result.at("state")) {}

std::string Session::hostWorkspace() const {
  const std::string id = state_.at("sessionId");
  for (const auto& entry : std::filesystem::directory_iterator(sidecar_.state()->path())) {
    const auto workspace = entry.path() / "sessions" / id / "workspace";
    if (std::filesystem::exists(workspace.parent_path())) {
      return workspace.string();
    }
  }
  throw std::runtime_error("no workspace on the host for session " + id);
}

Json Session::commandParams(std::vector<std::string> argv, Json more) const {
  Json command = std::move(more);
  command["executable"] = argv.front();
  command["args"] = std::vector<std::string>(argv.begin() + 1, argv.end());
  return {{"handle", handle_}, {"command", std::move(command)}};
}

RunOutcome Session::run(std::vector<std::string> argv, Json more, Milliseconds within) {
  const Json result = sidecar_.call("session.run", commandParams(std::move(argv), std::move(more)), within);
  return {result.at("exitCode"), result.at("stdout"), result.at("stderr"),
          result.value("/details/resource"_json_pointer, "")};
}

RunOutcome Session::sh(const std::string& script, Json more) {
  return run({"/bin/sh", "-c", script}, std::move(more));
}

std::string Session::install(const std::string& program) {
  sidecar_.call("session.writeBinaryFile",
                {{"handle", handle_}, {"path", program}, {"base64", encodeBase64(readFile(hostProgram(program)))}});
  const auto made = run({"/bin/chmod", "755", "/workspace/" + program});
  if (made.exitCode != 0) {
    throw std::runtime_error("chmod in the guest: " + made.err);
  }
  return "/workspace/" + program;
}

std::string hostProgram(const std::string& program) {
  const char* fromEnvironment = std::getenv("STITCHKIT_TEST_PROGRAMS");
  return std::string(fromEnvironment != nullptr ? fromEnvironment : TEST_PROGRAMS) + "/" + program;
}

}  // namespace stitchkit::testing
