// The calls that nearly every test makes: a session, a command in it, a program to attack with.
#pragma once

#include "tests/support/sidecar.h"

#include <string>
#include <vector>

namespace stitchkit::testing {

/// What a command gave.
struct RunOutcome {
  int exitCode = -1;
  std::string out;
  std::string err;
  std::string resource;  ///< details.resource; "" when there is none
};

/// One session over a sidecar that outlives it. Nothing happens at its end: a test says itself what stops.
class Session {
 public:
  /// backend.prewarm of an empty template and backend.create.
  explicit Session(Sidecar& sidecar, Json network = "deny-all");
  /// The same with `resources`.
  static Session withResources(Sidecar& sidecar, Json resources);
  /// By the result of a backend.create.
  static Session adopt(Sidecar& sidecar, Json created);
  /// backend.create with a saved state.
  Session(Sidecar& sidecar, Json network, Json state);

  [[nodiscard]] const std::string& handle() const { return handle_; }
  [[nodiscard]] const Json& state() const { return state_; }
  /// The workspace's folder on the host.
  [[nodiscard]] std::string hostWorkspace() const;

  /// Runs a program with arguments. `more` are further members of Command.
  RunOutcome run(std::vector<std::string> argv, Json more = Json::object(), Milliseconds within = Sidecar::kPatience);
  /// Runs `sh -c script`.
  RunOutcome sh(const std::string& script, Json more = Json::object());
  /// The parameters of session.run or session.spawn.
  [[nodiscard]] Json commandParams(std::vector<std::string> argv, Json more = Json::object()) const;

  /// Puts one of tests/programs into the workspace, executable, and gives its path in the guest.
  std::string install(const std::string& program);

  void stop() { sidecar_.call("handle.stop", {{"handle", handle_}}); }

 private:
  struct Created {
    Json result;
  };
  explicit Session(Created created, Sidecar& sidecar);

  Sidecar& sidecar_;
  std::string handle_;
  Json state_;
};

/// Where a program of tests/programs lies on the host: STITCHKIT_TEST_PROGRAMS, else beside this build's binary.
std::string hostProgram(const std::string& program);

}  // namespace stitchkit::testing
