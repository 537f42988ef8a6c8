// A session that may reach an upstream of the test's, with hostile clients in it.
#pragma once

#include "tests/attacks/attempts.h"
#include "tests/attacks/upstream.h"

#include <string>
#include <vector>

namespace stitchkit::testing {

/// A policy that allows the upstream. `more` are further members of the rule.
Json allowOnly(const Upstream& upstream, Json more = Json::object());

/// A session under such a policy, with tests/programs/gateway_peer.c in it.
class GatewayGuest {
 public:
  GatewayGuest(Sidecar& sidecar, const Upstream& upstream, Json policy);
  GatewayGuest(Sidecar& sidecar, const Upstream& upstream) : GatewayGuest(sidecar, upstream, allowOnly(upstream)) {}
  /// Of a saved state.
  GatewayGuest(Sidecar& sidecar, const Upstream& upstream, Json policy, Json state);

  [[nodiscard]] Session& session() { return session_; }
  [[nodiscard]] std::vector<std::string> argv(const std::string& mode, const std::vector<std::string>& more) const;
  /// What gateway_peer says.
  std::string run(const std::string& mode, const std::vector<std::string>& more,
                  Milliseconds within = Milliseconds(90000));
  /// The same, not waited for: the process. Its output is streamed.
  Json spawn(const std::string& mode, const std::vector<std::string>& more);
  void kill(const Json& process) { sidecar_.call("process.stop", {{"process", process}}); }
  /// The status that one GET gets, as text.
  std::string ask(const std::string& path = "/");

 private:
  Sidecar& sidecar_;
  std::string host_;
  Session session_;
  std::string program_;
};

/// How many lines of `output` are `line`.
long linesThatAre(const std::string& output, const std::string& line);

/// What the sidecar takes in memory from now on, beyond what it has now.
class MemoryGrowth {
 public:
  explicit MemoryGrowth(const Sidecar& sidecar);
  /// The most in KiB since then. 0 for a sanitized one, whose memory says nothing.
  [[nodiscard]] long kib() const;

 private:
  pid_t pid_;
  long before_;
};

}  // namespace stitchkit::testing
