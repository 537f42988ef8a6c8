// Calls of coding tools over the wire, and the answers of a host to what they ask.
#pragma once

#include "tests/support/session.h"

#include <cstdint>
#include <string>

namespace stitchkit::testing {

struct ToolCall {
  std::string tool;
  Json input;
};

/// One toolset of a session, both of which outlive it.
class ToolClient {
 public:
  /// `rules` are further parameters of coding.create; without them everything is allowed.
  ToolClient(Sidecar& sidecar, const Session& session, Json rules = Json::object());

  std::int64_t request(const std::string& tool, Json input);
  /// The whole answer.
  Json answer(const std::string& tool, Json input, Milliseconds within = Sidecar::kPatience);
  /// The output. Throws RpcError for an error.
  Json call(const std::string& tool, Json input, Milliseconds within = Sidecar::kPatience);

 private:
  Sidecar& sidecar_;
  std::string toolset_;
};

/// `error.data.code` of an answer; "" for a result.
std::string codeOf(const Json& answer);

/// Answers a request of the sidecar to the host.
void answerHost(Sidecar& sidecar, const Json& request, Json result);

}  // namespace stitchkit::testing
