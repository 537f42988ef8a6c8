#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "conformance/bytes.h"
#include "conformance/gateway_guest.h"
#include "conformance/matcher.h"
#include "conformance/step_runner.h"

namespace conformance {

using Problem = StepRunner::Problem;

namespace {

/// Elements that are plain objects match what has at least their members.
Json lenient(const Json& list) {
  if (!list.is_array()) {
    return list;
  }
  Json made = Json::array();
  for (const auto& element : list) {
    const bool matcher = element.is_object() && element.size() == 1 && element.begin().key().starts_with("$");
    made.push_back(element.is_object() && !matcher ? Json{{"$partial", element}} : element);
  }
  return made;
}

/// How many connections got which status first.
Json countStatuses(const Json& connections) {
  Json counts = Json::object();
  for (const auto& connection : connections) {
    const Json& replies = connection["replies"];
    const std::string status = replies.empty() ? "none" : replies[0]["status"].dump();
    counts[status] = counts.value(status, 0) + 1;
  }
  return counts;
}

/// The first regular file below that holds one of the texts, or "".
std::string fileWith(const std::filesystem::path& folder, const std::vector<std::string>& texts) {
  std::error_code error;
  const auto options = std::filesystem::directory_options::skip_permission_denied;
  for (std::filesystem::recursive_directory_iterator at(folder, options, error), end; at != end; at.increment(error)) {
    if (!at->is_regular_file(error) || at->is_symlink(error)) {
      continue;
    }
    std::ostringstream content;
    content << std::ifstream(at->path(), std::ios::binary).rdbuf();
    for (const auto& text : texts) {
      if (content.view().find(text) != std::string_view::npos) {
        return at->path().filename().string();
      }
    }
  }
  return "";
}

}  // namespace

Problem StepRunner::upstream(const Json& step) {
  const auto name = step["upstream"].get<std::string>();
  auto& upstream = upstreams_[name];
  if (!upstream) {
    std::string problem;
    upstream = Upstream::start(step.value("tls", ""), events_, problem);
    if (!upstream) {
      return problem;
    }
    const std::string host = "127.0.0.1:" + std::to_string(upstream->port());
    variables_[name + ".port"] = upstream->port();
    variables_[name + ".host"] = host;
    variables_[name + ".origin"] = (upstream->secure() ? "https://" : "http://") + host;
  } else if (step.contains("tls")) {
    return "this upstream runs already";
  }
  upstream->setScript(UpstreamScript(step));
  return std::nullopt;
}

Upstream* StepRunner::findUpstream(const Json& name) {
  const auto found = upstreams_.find(name.get<std::string>());
  return found == upstreams_.end() ? nullptr : found->second.get();
}

Problem StepRunner::judgeUpstream(const Json& name, const Json& step) {
  Upstream* upstream = findUpstream(name);
  if (upstream == nullptr) {
    return "no upstream has the name " + name.dump();
  }
  const Upstream::Record record = upstream->takeRecord();
  const Json came = {
      {"requests", record.requests}, {"connections", record.connections}, {"handshakes", record.handshakes}};
  Json wanted = Json::object();
  if (step.contains("are")) {
    wanted["requests"] = lenient(step["are"]);
  }
  for (const char* member : {"connections", "handshakes"}) {
    if (step.contains(member)) {
      wanted[member] = step[member];
    }
  }
  const Problem problem = mismatch({{"$partial", wanted}}, came);
  return problem ? "upstream " + name.get<std::string>() + ": " + *problem + "\n  it saw: " + show(came, 4000)
                 : Problem();
}

Problem StepRunner::upstreamSaw(const Json& step) {
  return judgeUpstream(step["upstreamSaw"], step);
}

Problem StepRunner::upstreamReached(const Json& step) {
  Upstream* upstream = findUpstream(step["upstreamReached"]);
  const bool reached = upstream != nullptr && upstream->awaitRequests(step.value("requests", 1U), deadline(step));
  return reached ? Problem() : "the upstream was not reached so often";
}

Problem StepRunner::upstreamLeft(const Json& step) {
  Upstream* upstream = findUpstream(step["upstreamLeft"]);
  const bool left = upstream != nullptr && upstream->awaitLeft(deadline(step));
  return left ? Problem() : "the upstream still has connections";
}

Problem StepRunner::release(const Json& step) {
  events_.named(step["release"].get<std::string>()).raise();
  return std::nullopt;
}

Problem StepRunner::callMethod(Connection& peer, const Json& step, const std::string& method, const Json& params,
                               Json& result) {
  const Json id = peer.nextId();
  const Json message = {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}};
  if (Problem problem = peer.send(message, false)) {
    return problem;
  }
  Json answer;
  if (Problem problem = takeAnswer(peer, id, deadline(step), answer)) {
    return problem;
  }
  if (!answer.contains("result")) {
    return "the guest of this step failed: " + show(answer);
  }
  result = answer["result"];
  return std::nullopt;
}

Problem StepRunner::gateway(const Json& step) {
  Connection& peer = *connection(step);
  Json params;
  if (Problem problem = guestParams(step, params)) {
    return problem;
  }
  const auto handle = variables_.find("handle");
  params["handle"] = step.value("handle", handle == variables_.end() ? Json() : handle->second);
  const bool background = step.contains("as");
  Json result;
  if (Problem problem = callMethod(peer, step, background ? "session.spawn" : "session.run", params, result)) {
    return problem;
  }
  if (background) {
    variables_[step["as"].get<std::string>()] = result["process"];
    return std::nullopt;
  }
  return judgeGateway(step, result["exitCode"], result["stdout"].get<std::string>(), result["stderr"]);
}

Problem StepRunner::awaitGateway(const Json& step) {
  const auto process = variables_.find(step["awaitGateway"].get<std::string>());
  if (process == variables_.end()) {
    return "no step gateway has this name";
  }
  Json result;
  if (Problem problem = callMethod(*connection(step), step, "process.result", {{"process", process->second}}, result)) {
    return problem;
  }
  const auto output = decodeBase64(result["stdout"]["base64"].get<std::string>());
  const auto errors = decodeBase64(result["stderr"]["base64"].get<std::string>());
  return judgeGateway(step, result["exitCode"], output.value_or(""), latin1(errors.value_or("")));
}

Problem StepRunner::judgeGateway(const Json& step, const Json& exitCode, const std::string& output,
                                 const Json& errors) {
  if (exitCode != 0) {
    return "the guest ended with " + exitCode.dump() + ": " + show(errors);
  }
  Json connections;
  if (Problem problem = readGuestOutput(output, step.value("head", false), connections)) {
    return problem;
  }
  Json wanted = {{"end", step.value("end", Json("closed"))}, {"rest", step.value("rest", Json(""))}};
  if (step.contains("replies")) {
    wanted["replies"] = lenient(step["replies"]);
  }
  if (step.contains("text")) {
    wanted["text"] = step["text"];
  }
  for (auto& one : connections) {
    if (Problem problem = findSecret(one["text"].get<std::string>(), "what the guest got")) {
      return problem;
    }
    if (Problem problem = mismatch({{"$partial", wanted}}, one)) {
      one.erase("text");
      return "the guest: " + *problem + "\n  it got: " + show(one, 2000);
    }
  }
  if (step.contains("statuses")) {
    if (Problem problem = mismatch(step["statuses"], countStatuses(connections))) {
      return "statuses " + *problem;
    }
  }
  return judgeAround(step);
}

Problem StepRunner::judgeAround(const Json& step) {
  const Json saw = step.value("saw", Json::object());
  for (const auto& [name, requests] : saw.items()) {
    if (Problem problem = judgeUpstream(name, {{"are", requests}})) {
      return problem;
    }
  }
  return step.contains("errors") ? takeBrokerErrors(step, step["errors"]) : Problem();
}

Problem StepRunner::brokerErrors(const Json& step) {
  return takeBrokerErrors(step, step["brokerErrors"]);
}

Problem StepRunner::takeBrokerErrors(const Json& step, const Json& wanted) {
  for (const auto& error : wanted) {
    const Json params = error.is_string() ? Json{{"code", error}} : error;
    const Json message = {{"$partial", {{"method", "gateway.error"}, {"params", {{"$partial", params}}}}}};
    if (Problem problem = takeMatching(step, message)) {
      return problem;
    }
  }
  Json none = {{"expectNone", {{"$partial", {{"method", "gateway.error"}}}}}, {"on", step.value("on", "main")}};
  return expectNone(none);
}

Problem StepRunner::secrets(const Json& step) {
  for (const auto& secret : step["secrets"]) {
    secrets_.push_back(secret.get<std::string>());
  }
  for (const auto& [name, peer] : scene_.all()) {
    peer->setSecrets(secrets_);
  }
  return std::nullopt;
}

Problem StepRunner::findSecret(std::string_view text, const char* where) const {
  const bool found = std::any_of(secrets_.begin(), secrets_.end(), [&](const std::string& secret) {
    return text.find(secret) != std::string_view::npos;
  });
  return found ? Problem(std::string("a secret stands in ") + where) : Problem();
}

Problem StepRunner::findSecretsLeft() const {
  if (secrets_.empty()) {
    return std::nullopt;
  }
  const std::string file = fileWith(scene_.directory().state(), secrets_);
  if (!file.empty()) {
    return "a secret stands on disk, in " + file;
  }
  for (const auto& [name, peer] : scene_.all()) {
    if (Problem problem = findSecret(peer->process().errorTail(), "stderr")) {
      return problem;
    }
  }
  return std::nullopt;
}

}  // namespace conformance
