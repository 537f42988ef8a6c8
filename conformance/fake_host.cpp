#include "conformance/fake_host.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "conformance/bytes.h"

namespace conformance {
namespace {

using Problem = std::optional<std::string>;

constexpr std::string_view kArtifactMethods = "host.artifacts.";

HostReply result(Json value) {
  return {Json{{"result", std::move(value)}}, false};
}

HostReply unknownReference() {
  return {Json{{"error",
                {{"code", -32015},
                 {"message", "There is no such artifact"},
                 {"data", {{"code", "SPILL_REFERENCE_UNKNOWN"}}}}}},
          false};
}

bool fits(const Json& patterns, const std::string& path) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const Json& pattern) {
    return pattern.contains("exact") ? pattern["exact"] == path
                                     : path.starts_with(pattern["prefix"].get<std::string>());
  });
}

Json withText(Json described, const std::string& bytes) {
  described["bytes"] = bytes.size();
  if (isUtf8(bytes)) {
    described["text"] = bytes;
  } else {
    described["base64"] = encodeBase64(bytes);
  }
  return described;
}

/// `{matches: [{line, text}]}` as lines are counted from 1.
Json linesWith(const std::string& bytes, const std::string& query, std::size_t most) {
  Json matches = Json::array();
  std::size_t at = 0;
  for (int line = 1; at < bytes.size() && matches.size() < most; ++line) {
    const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
    const std::string text = bytes.substr(at, end - at);
    if (text.find(query) != std::string::npos) {
      matches.push_back({{"line", line}, {"text", text}});
    }
    at = end + 1;
  }
  return {{"matches", matches}};
}

}  // namespace

Json FakeHost::emptyRecord() {
  return {{"authorized", Json::array()},
          {"pathQueries", Json::array()},
          {"artifactsWritten", Json::array()},
          {"asked", Json::array()}};
}

Json FakeHost::takeRecord() {
  return std::exchange(record_, emptyRecord());
}

Problem FakeHost::configure(const Json& rules) {
  for (const auto& [name, rule] : rules.items()) {
    if (rule.is_null()) {
      rules_.erase(name);
    } else {
      rules_[name] = rule;
    }
  }
  return rules.contains("artifacts") && !rules["artifacts"].is_null() ? preload(rules["artifacts"]) : Problem();
}

Problem FakeHost::preload(const Json& artifacts) {
  artifacts_.clear();
  const Json given = artifacts.value("preload", Json::object());
  for (const auto& [reference, content] : given.items()) {
    auto bytes = content.contains("base64") ? decodeBase64(content["base64"].get<std::string>())
                                            : std::optional(content["text"].get<std::string>());
    if (!bytes) {
      return "the case holds wrong base64";
    }
    const auto request = content.find("request");
    artifacts_[reference] = {std::move(*bytes),
                             request == content.end() ? std::nullopt : std::optional<Json>(*request)};
  }
  return std::nullopt;
}

std::optional<HostReply> FakeHost::answer(const std::string& method, const Json& params) {
  record_["asked"].push_back({{"method", method}, {"params", params}});
  if (method == "host.authorize") {
    record_["authorized"].push_back(params["request"]);
  } else if (method == "host.authorizePaths") {
    record_["pathQueries"].insert(record_["pathQueries"].end(), params["paths"].begin(), params["paths"].end());
  }
  if (method == "$/cancelRequest") {
    return rules_.empty() ? std::nullopt : std::optional<HostReply>(HostReply{});
  }
  if (auto reply = scripted(method)) {
    return reply;
  }
  if (method == "host.authorize" && rules_.contains("authorize")) {
    return authorize(params["request"]);
  }
  if (method == "host.authorizePaths" && rules_.contains("paths")) {
    return authorizePaths(params["paths"]);
  }
  if (method.starts_with(kArtifactMethods) && rules_.contains("artifacts")) {
    return artifact(method.substr(kArtifactMethods.size()), params);
  }
  return std::nullopt;
}

std::optional<HostReply> FakeHost::scripted(const std::string& method) const {
  const Json answers = rules_.value("answers", Json::object());
  if (!answers.contains(method)) {
    return std::nullopt;
  }
  Json outcome = answers[method];
  const bool invalid = outcome.value("invalid", false);
  outcome.erase("invalid");
  return outcome.contains("silent") ? HostReply{} : HostReply{outcome, invalid};
}

HostReply FakeHost::authorize(const Json& request) const {
  const Json& rule = rules_["authorize"];
  const Json denied = rule.is_object() ? rule["deny"] : Json::array();
  const bool denies = rule == "deny" || std::find(denied.begin(), denied.end(), request["operation"]) != denied.end();
  return result({{"allowed", !denies}});
}

HostReply FakeHost::authorizePaths(const Json& paths) const {
  const Json& rule = rules_["paths"];
  Json allowed = Json::array();
  for (const auto& path : paths) {
    const auto name = path.get<std::string>();
    const bool allows =
        rule.is_string() || (rule.contains("deny") ? !fits(rule["deny"], name) : fits(rule["allowOnly"], name));
    allowed.push_back(allows);
  }
  return result({{"allowed", allowed}});
}

HostReply FakeHost::artifact(const std::string& operation, const Json& params) {
  if (operation == "write") {
    return writeArtifact(params);
  }
  const auto found = artifacts_.find(params["reference"].get<std::string>());
  if (operation == "authorization") {
    const bool has = found != artifacts_.end() && found->second.request;
    return result(has ? Json{{"request", *found->second.request}} : Json::object());
  }
  if (found == artifacts_.end()) {
    return unknownReference();
  }
  return operation == "read" ? readArtifact(found->second, params)
                             : result(linesWith(found->second.bytes, params["query"].get<std::string>(),
                                                params["maxMatches"].get<std::size_t>()));
}

HostReply FakeHost::writeArtifact(const Json& params) {
  const std::string reference = "artifact-" + std::to_string(++written_);
  const auto bytes = decodeBase64(params["base64"].get<std::string>()).value_or("");
  artifacts_[reference] = {bytes, params["request"]};
  record_["artifactsWritten"].push_back(
      withText({{"reference", reference}, {"mediaType", params["mediaType"]}, {"request", params["request"]}}, bytes));
  return result({{"reference", reference}});
}

HostReply FakeHost::readArtifact(const Artifact& artifact, const Json& params) const {
  const std::size_t begin = std::min(params["offset"].get<std::size_t>(), artifact.bytes.size());
  const std::size_t most = params["maxBytes"].get<std::size_t>() + rules_["artifacts"].value("overBudget", 0U);
  return result({{"base64", encodeBase64(artifact.bytes.substr(begin, most))}, {"totalBytes", artifact.bytes.size()}});
}

}  // namespace conformance
