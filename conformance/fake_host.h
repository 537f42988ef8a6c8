// The host that is asked: rules that a case sets, artifacts that it keeps, and a record of what it was asked.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "conformance/connection.h"
#include "conformance/json_text.h"

namespace conformance {

class FakeHost {
 public:
  /// The rules of a step `host` (case.schema.json tells their shape) replace those of the same name; null drops one.
  /// nullopt, or what is wrong with them.
  std::optional<std::string> configure(const Json& rules);
  [[nodiscard]] bool hasRules() const { return !rules_.empty(); }

  /// The answer to a request, which is written down in any case; nullopt when no rule takes it. A cancellation is taken
  /// when there are any rules.
  std::optional<HostReply> answer(const std::string& method, const Json& params);

  /// `{authorized, pathQueries, artifactsWritten, asked}` since the last call.
  Json takeRecord();

 private:
  struct Artifact {
    std::string bytes;
    std::optional<Json> request;
  };

  std::optional<std::string> preload(const Json& artifacts);
  std::optional<HostReply> scripted(const std::string& method) const;
  [[nodiscard]] HostReply authorize(const Json& request) const;
  [[nodiscard]] HostReply authorizePaths(const Json& paths) const;
  HostReply artifact(const std::string& operation, const Json& params);
  HostReply writeArtifact(const Json& params);
  [[nodiscard]] HostReply readArtifact(const Artifact& artifact, const Json& params) const;

  Json rules_ = Json::object();
  std::map<std::string, Artifact> artifacts_;
  int written_ = 0;
  Json record_ = emptyRecord();
  static Json emptyRecord();
};

}  // namespace conformance
