#include "conformance/step_runner.h"

namespace conformance {

using Problem = StepRunner::Problem;

const std::map<std::string, StepRunner::Action>& StepRunner::actions() {
  static const std::map<std::string, Action> table = {
      {"call", &StepRunner::call},
      {"await", &StepRunner::await},
      {"send", &StepRunner::send},
      {"sendText", &StepRunner::sendText},
      {"sendBase64", &StepRunner::sendBase64},
      {"expect", &StepRunner::expect},
      {"expectAll", &StepRunner::expectAll},
      {"expectNone", &StepRunner::expectNone},
      {"drop", &StepRunner::drop},
      {"closeInput", &StepRunner::closeInput},
      {"closeOutput", &StepRunner::closeOutput},
      {"expectEnd", &StepRunner::expectEnd},
      {"signal", &StepRunner::signal},
      {"restart", &StepRunner::restart},
      {"start", &StepRunner::start},
      {"repeat", &StepRunner::repeat},
      {"host", &StepRunner::host},
      {"expectHost", &StepRunner::expectHost},
      {"hostFile", &StepRunner::hostFile},
      {"hostLink", &StepRunner::hostLink},
      {"hostDirectory", &StepRunner::hostDirectory},
      {"hostFifo", &StepRunner::hostFifo},
      {"hostEntries", &StepRunner::hostEntries},
      {"hostMove", &StepRunner::hostMove},
      {"hostRemove", &StepRunner::hostRemove},
      {"hostMode", &StepRunner::hostMode},
      {"hostTree", &StepRunner::hostTree},
      {"hostChanges", &StepRunner::hostChanges},
      {"fifoText", &StepRunner::fifoText},
      {"fifoEnd", &StepRunner::fifoEnd},
      {"upstream", &StepRunner::upstream},
      {"upstreamSaw", &StepRunner::upstreamSaw},
      {"upstreamReached", &StepRunner::upstreamReached},
      {"upstreamLeft", &StepRunner::upstreamLeft},
      {"release", &StepRunner::release},
      {"gateway", &StepRunner::gateway},
      {"awaitGateway", &StepRunner::awaitGateway},
      {"brokerErrors", &StepRunner::brokerErrors},
      {"secrets", &StepRunner::secrets},
  };
  return table;
}

StepRunner::StepRunner(const Case& testCase, const Contract& contract, const Settings& settings, Scene& scene)
    : case_(testCase), contract_(contract), settings_(settings), scene_(scene), files_(scene.directory()) {}

StepRunner::~StepRunner() {
  for (const auto& [name, peer] : scene_.all()) {
    peer->setHost({});
    peer->setSecrets({});
  }
}

Problem StepRunner::run() {
  variables_["outside"] = scene_.directory().outside().string();
  Connection* shared = scene_.find("main");
  if (shared != nullptr) {
    attachHost(*shared);
  } else if (Problem problem = startConnection("main", Json(case_.args))) {
    return problem;
  }
  return runSteps(case_.steps, "");
}

Problem StepRunner::closeAll() {
  at_ = "end";
  current_ = "the input is closed";
  for (const auto& [name, peer] : scene_.all()) {
    if (!peer->process().ended()) {
      if (Problem problem = Scene::close(*peer, deadline(Json::object()))) {
        return problem;
      }
    }
    if (!peer->inbox().empty()) {
      return "messages came that no step asked for";
    }
  }
  return findSecretsLeft();
}

Problem StepRunner::cleanUp() {
  at_ = "end";
  current_ = "the sessions are deleted";
  Connection* peer = scene_.find("main");
  if (Problem problem = findSecretsLeft()) {
    return problem;
  }
  // The newest first: an older handle of the same session owns nothing.
  for (auto handle = handles_.rbegin(); handle != handles_.rend(); ++handle) {
    if (Problem problem = deleteSession(*peer, *handle)) {
      return problem;
    }
  }
  return peer->inbox().empty() ? Problem() : Problem("messages came that no step asked for");
}

Problem StepRunner::deleteSession(Connection& peer, const Json& handle) {
  const Json id = peer.nextId();
  const Json message = {{"jsonrpc", "2.0"}, {"id", id}, {"method", "handle.delete"}, {"params", {{"handle", handle}}}};
  if (Problem problem = peer.send(message, false)) {
    return problem;
  }
  Json answer;
  if (Problem problem = takeAnswer(peer, id, deadline(Json::object()), answer)) {
    return problem;
  }
  // The case may have deleted it itself.
  const Json code = answer.value("error", Json::object()).value("data", Json::object()).value("code", "");
  const bool gone = answer.contains("result") || code == "SANDBOX_STOPPED" || code == "NOT_FOUND";
  return gone ? Problem() : "a session cannot be deleted: " + show(answer);
}

Failure StepRunner::describe(std::string problem) const {
  Failure failure{at_, show(current_), std::move(problem), "", ""};
  for (const auto& [name, peer] : scene_.all()) {
    const std::string label = scene_.all().size() > 1 ? name + ": " : "";
    for (const auto& message : peer->inbox()) {
      failure.unread += label + show(message) + "\n";
    }
    failure.errors += peer->process().errorTail();
    if (const auto& ending = peer->process().ending()) {
      failure.errors += "(" + label + "ended with " +
                        (ending->exitCode ? "exit code " + std::to_string(*ending->exitCode)
                                          : "signal " + std::to_string(ending->signal.value_or(0))) +
                        ")\n";
    }
  }
  return failure;
}

Problem StepRunner::runSteps(const std::vector<Json>& steps, const std::string& prefix) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string at = prefix + std::to_string(i + 1);
    at_ = at;
    if (Problem problem = runStep(steps[i])) {
      return problem;
    }
  }
  return std::nullopt;
}

Problem StepRunner::runStep(const Json& step) {
  for (const auto& [name, action] : actions()) {
    if (!step.contains(name)) {
      continue;
    }
    current_ = step;
    // The steps within a repetition are expanded one at a time, since they capture.
    if (name != "repeat") {
      if (Problem problem = expand(current_, variables_)) {
        return problem;
      }
    }
    const Json expanded = current_;
    return (this->*action)(expanded);
  }
  return "a step that no action knows";
}

Problem StepRunner::startConnection(const std::string& name, const Json& args) {
  Problem problem = scene_.start(name, args.get<std::vector<std::string>>(), case_.framing, case_.backendName);
  if (!problem) {
    attachHost(*scene_.find(name));
  }
  return problem;
}

void StepRunner::attachHost(Connection& peer) {
  peer.setSecrets(secrets_);
  peer.setHost([this](const std::string& method, const Json& params) { return fakeHost_.answer(method, params); });
}

Deadline StepRunner::deadline(const Json& step) const {
  const auto given = std::chrono::milliseconds(step.value("timeoutMs", settings_.stepTimeout.count()));
  return std::chrono::steady_clock::now() + given;
}

std::string StepRunner::pathIn(const Json& step, const Json& text) const {
  const auto found = variables_.find("session");
  const Json captured = found == variables_.end() || !found->second.is_object() ? Json::object() : found->second;
  return files_.resolve(text.get<std::string>(), case_.backendName, step.value("session", captured.value("id", "")));
}

Problem StepRunner::repeat(const Json& step) {
  const std::string at = at_;
  const auto steps = step["steps"].get<std::vector<Json>>();
  for (int i = 1; i <= step["repeat"].get<int>(); ++i) {
    variables_["round"] = i;
    if (Problem problem = runSteps(steps, at + "." + std::to_string(i) + ".")) {
      return problem;
    }
  }
  return std::nullopt;
}

}  // namespace conformance
