#include <csignal>

#include "conformance/matcher.h"
#include "conformance/step_runner.h"

namespace conformance {

using Problem = StepRunner::Problem;

Problem StepRunner::closeInput(const Json& step) {
  Connection* peer = connection(step);
  if (Problem problem = flush(*peer, step)) {
    return problem;
  }
  peer->process().closeInput();
  return std::nullopt;
}

Problem StepRunner::closeOutput(const Json& step) {
  connection(step)->process().closeOutput();
  return std::nullopt;
}

Problem StepRunner::expectEnd(const Json& step) {
  Connection* peer = connection(step);
  if (Problem problem = peer->waitForEnd(deadline(step))) {
    return problem;
  }
  const auto& ending = *peer->process().ending();
  Json came = Json::object();
  if (ending.exitCode) {
    came["exitCode"] = *ending.exitCode;
  } else {
    came["signal"] = ending.signal.value_or(0);
  }
  return mismatch(step["expectEnd"], came);
}

Problem StepRunner::signal(const Json& step) {
  static const std::map<std::string, int> numbers = {{"SIGTERM", SIGTERM}, {"SIGINT", SIGINT},   {"SIGKILL", SIGKILL},
                                                     {"SIGPIPE", SIGPIPE}, {"SIGSTOP", SIGSTOP}, {"SIGCONT", SIGCONT}};
  Connection* peer = connection(step);
  if (Problem problem = flush(*peer, step)) {
    return problem;
  }
  peer->process().signal(numbers.at(step["signal"].get<std::string>()));
  return std::nullopt;
}

Problem StepRunner::restart(const Json& step) {
  Connection* peer = connection(step);
  if (step["restart"] == "close") {
    if (Problem problem = Scene::close(*peer, deadline(step))) {
      return problem;
    }
  } else {
    peer->process().signal(SIGKILL);
    if (Problem problem = peer->waitForEnd(deadline(step))) {
      return problem;
    }
  }
  if (!peer->inbox().empty()) {
    return "messages came that no step asked for";
  }
  return startConnection(step.value("on", "main"), step.value("args", Json(case_.args)));
}

Problem StepRunner::start(const Json& step) {
  return startConnection(step["start"].get<std::string>(), step.value("args", Json(case_.args)));
}

}  // namespace conformance
