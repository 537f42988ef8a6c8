#include "conformance/case_run.h"

#include <csignal>
#include <map>

#include "conformance/bytes.h"
#include "conformance/connection.h"
#include "conformance/expand.h"
#include "conformance/host_files.h"
#include "conformance/matcher.h"

namespace conformance {
namespace {

using Problem = std::optional<std::string>;

class CaseRun {
 public:
  CaseRun(const Case& testCase, const Contract& contract, const Settings& settings)
      : case_(testCase), contract_(contract), settings_(settings), files_(directory_) {}

  std::optional<Failure> run();

 private:
  using Action = Problem (CaseRun::*)(const Json& step);
  static const std::map<std::string, Action>& actions();

  Problem runSteps(const std::vector<Json>& steps, const std::string& prefix);
  Problem runStep(const Json& step);
  Problem startConnection(const std::string& name, const Json& args);
  Problem finish();
  Failure describe(std::string problem);
  Connection* connection(const Json& step);
  std::string pathIn(const Json& step, const Json& text) const;
  [[nodiscard]] Deadline deadline(const Json& step) const;

  Problem call(const Json& step);
  Problem await(const Json& step);
  Problem send(const Json& step);
  Problem sendText(const Json& step);
  Problem sendBase64(const Json& step);
  Problem expect(const Json& step);
  Problem expectAll(const Json& step);
  Problem expectNone(const Json& step);
  Problem drop(const Json& step);
  Problem closeInput(const Json& step);
  Problem closeOutput(const Json& step);
  Problem expectEnd(const Json& step);
  Problem signal(const Json& step);
  Problem restart(const Json& step);
  Problem start(const Json& step);
  Problem repeat(const Json& step);
  Problem hostFile(const Json& step);
  Problem hostLink(const Json& step);
  Problem hostDirectory(const Json& step);
  Problem hostFifo(const Json& step);
  Problem hostRemove(const Json& step);
  Problem hostMode(const Json& step);
  Problem hostTree(const Json& step);
  Problem fifoText(const Json& step);
  Problem fifoEnd(const Json& step);

  /// Until what was sent is in the pipe.
  Problem flush(Connection& peer, const Json& step);
  Problem sendSlices(const Json& step, const Json& slices, bool base64);
  Problem awaitAnswer(const Json& step, const Json& id);
  Problem judgeAnswer(const Json& step, const Json& answer);
  Problem capture(const Json& step, const Json& from);
  Problem takeMatching(const Json& step, const Json& wanted);
  Problem closeConnection(Connection& peer, const Json& step);

  const Case& case_;
  const Contract& contract_;
  const Settings& settings_;
  CaseDirectory directory_;
  HostFiles files_;
  Variables variables_;
  std::map<std::string, Json> calls_;  ///< ids of calls that are to be awaited, by name
  std::map<std::string, std::unique_ptr<Connection>> connections_;
  std::string at_ = "start";
  Json current_;
};

const std::map<std::string, CaseRun::Action>& CaseRun::actions() {
  static const std::map<std::string, Action> table = {
      {"call", &CaseRun::call},
      {"await", &CaseRun::await},
      {"send", &CaseRun::send},
      {"sendText", &CaseRun::sendText},
      {"sendBase64", &CaseRun::sendBase64},
      {"expect", &CaseRun::expect},
      {"expectAll", &CaseRun::expectAll},
      {"expectNone", &CaseRun::expectNone},
      {"drop", &CaseRun::drop},
      {"closeInput", &CaseRun::closeInput},
      {"closeOutput", &CaseRun::closeOutput},
      {"expectEnd", &CaseRun::expectEnd},
      {"signal", &CaseRun::signal},
      {"restart", &CaseRun::restart},
      {"start", &CaseRun::start},
      {"repeat", &CaseRun::repeat},
      {"hostFile", &CaseRun::hostFile},
      {"hostLink", &CaseRun::hostLink},
      {"hostDirectory", &CaseRun::hostDirectory},
      {"hostFifo", &CaseRun::hostFifo},
      {"hostRemove", &CaseRun::hostRemove},
      {"hostMode", &CaseRun::hostMode},
      {"hostTree", &CaseRun::hostTree},
      {"fifoText", &CaseRun::fifoText},
      {"fifoEnd", &CaseRun::fifoEnd},
  };
  return table;
}

std::optional<Failure> CaseRun::run() {
  if (!directory_.valid()) {
    return describe("no directory for the case can be made");
  }
  variables_["outside"] = directory_.outside().string();
  Problem problem = startConnection("main", Json(case_.args));
  if (!problem) {
    problem = runSteps(case_.steps, "");
  }
  if (!problem) {
    at_ = "end";
    current_ = "the input is closed";
    problem = finish();
  }
  return problem ? std::optional<Failure>(describe(*problem)) : std::nullopt;
}

Failure CaseRun::describe(std::string problem) {
  Failure failure{at_, show(current_), std::move(problem), "", ""};
  for (auto& [name, peer] : connections_) {
    const std::string label = connections_.size() > 1 ? name + ": " : "";
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

Problem CaseRun::runSteps(const std::vector<Json>& steps, const std::string& prefix) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string at = prefix + std::to_string(i + 1);
    at_ = at;
    if (Problem problem = runStep(steps[i])) {
      return problem;
    }
  }
  return std::nullopt;
}

Problem CaseRun::runStep(const Json& step) {
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

Problem CaseRun::startConnection(const std::string& name, const Json& args) {
  std::vector<std::string> command = settings_.command;
  for (const auto& argument : args) {
    command.push_back(argument.get<std::string>());
  }
  for (auto& argument : command) {
    argument = files_.resolve(argument, case_.backendName, "");
  }
  std::string problem;
  auto process = Process::start(command, problem);
  if (!process) {
    return problem;
  }
  connections_[name] =
      std::make_unique<Connection>(std::move(process), contract_, case_.framing, directory_.state().string());
  return std::nullopt;
}

Connection* CaseRun::connection(const Json& step) {
  const auto found = connections_.find(step.value("on", "main"));
  return found == connections_.end() ? nullptr : found->second.get();
}

Deadline CaseRun::deadline(const Json& step) const {
  const auto given = std::chrono::milliseconds(step.value("timeoutMs", settings_.stepTimeout.count()));
  return std::chrono::steady_clock::now() + given;
}

std::string CaseRun::pathIn(const Json& step, const Json& text) const {
  const auto found = variables_.find("session");
  const Json captured = found == variables_.end() || !found->second.is_object() ? Json::object() : found->second;
  return files_.resolve(text.get<std::string>(), case_.backendName, step.value("session", captured.value("id", "")));
}

Problem CaseRun::closeConnection(Connection& peer, const Json& step) {
  peer.process().closeInput();
  if (Problem problem = peer.waitForEnd(deadline(step))) {
    return problem;
  }
  const auto& ending = peer.process().ending();
  return ending->exitCode == 0 ? Problem() : Problem("expected exit code 0 after the end of input");
}

Problem CaseRun::finish() {
  for (auto& [name, peer] : connections_) {
    if (!peer->process().ended()) {
      if (Problem problem = closeConnection(*peer, Json::object())) {
        return problem;
      }
    }
    if (!peer->inbox().empty()) {
      return "messages came that no step asked for";
    }
  }
  return std::nullopt;
}

Problem CaseRun::call(const Json& step) {
  Connection* peer = connection(step);
  const auto method = step["call"].get<std::string>();
  const Json params = step.value("params", Json::object());
  const bool invalid = step.value("invalid", false);
  if (invalid && contract_.knows(method) && !contract_.checkParams(method, params)) {
    return "the case says \"invalid\", but the document allows these parameters";
  }
  const Json id = step.contains("id") ? step["id"] : Json(peer->nextId());
  Json message = {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}};
  if (step.contains("params")) {
    message["params"] = params;
  }
  if (Problem problem = peer->send(message, invalid)) {
    return problem;
  }
  if (step.contains("as")) {
    calls_[step["as"].get<std::string>()] = id;
    return flush(*peer, step);
  }
  return awaitAnswer(step, id);
}

Problem CaseRun::await(const Json& step) {
  const auto found = calls_.find(step["await"].get<std::string>());
  if (found == calls_.end()) {
    return "no call has this name";
  }
  return awaitAnswer(step, found->second);
}

Problem CaseRun::awaitAnswer(const Json& step, const Json& id) {
  Connection* peer = connection(step);
  auto& inbox = peer->inbox();
  const auto find = [&] {
    return std::find_if(inbox.begin(), inbox.end(), [&](const Json& message) {
      return message.is_object() && message.value("id", Json("?")) == id;
    });
  };
  if (Problem problem = peer->waitFor([&] { return find() != inbox.end(); }, deadline(step))) {
    return "no answer: " + *problem;
  }
  const Json answer = *find();
  inbox.erase(find());
  return judgeAnswer(step, answer);
}

Problem CaseRun::judgeAnswer(const Json& step, const Json& answer) {
  if (step.contains("error")) {
    if (!answer.contains("error")) {
      return "expected the error " + show(step["error"]) + "\n  came: " + show(answer);
    }
    const Json wanted = step["error"].is_string() ? Json{{"code", step["error"]}} : step["error"];
    if (Problem problem = mismatch(Json{{"$partial", wanted}}, answer["error"]["data"])) {
      return "error.data " + *problem + "\n  came: " + show(answer);
    }
    return capture(step, answer["error"]);
  }
  if (!answer.contains("result")) {
    return "expected the result " + (step.contains("result") ? show(step["result"]) : "") + "\n  came: " + show(answer);
  }
  if (step.contains("result")) {
    if (Problem problem = mismatch(step["result"], answer["result"])) {
      return "result " + *problem + "\n  came: " + show(answer);
    }
  }
  return capture(step, answer["result"]);
}

Problem CaseRun::capture(const Json& step, const Json& from) {
  const Json wanted = step.value("capture", Json::object());
  for (const auto& [name, pointer] : wanted.items()) {
    const Json::json_pointer at(pointer.get<std::string>());
    if (!from.contains(at)) {
      return "nothing to capture at " + pointer.dump() + " in " + show(from);
    }
    variables_[name] = from[at];
  }
  return std::nullopt;
}

Problem CaseRun::flush(Connection& peer, const Json& step) {
  return peer.waitFor([&] { return peer.process().inputFlushed(); }, deadline(step));
}

Problem CaseRun::send(const Json& step) {
  Connection* peer = connection(step);
  const Problem problem = peer->send(step["send"], step.value("invalid", false));
  return problem ? problem : flush(*peer, step);
}

Problem CaseRun::sendSlices(const Json& step, const Json& slices, bool base64) {
  Connection* peer = connection(step);
  const Json list = slices.is_array() ? slices : Json::array({slices});
  std::vector<std::string> parts;
  for (const auto& slice : list) {
    auto bytes = base64 ? decodeBase64(slice.get<std::string>()) : slice.get<std::string>();
    if (!bytes) {
      return "the case holds wrong base64";
    }
    parts.push_back(std::move(*bytes));
  }
  if (parts.size() == 1) {
    peer->sendRaw(parts[0]);
    return flush(*peer, step);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    peer->sendRaw(parts[i]);
    // Each slice is taken out of the pipe before the next goes in. The kernel tells no event for that.
    const Deadline until = deadline(step);
    while (!peer->process().inputTaken()) {
      if (std::chrono::steady_clock::now() > until) {
        return "the implementation does not read its input";
      }
      (void)peer->process().wait([] { return false; }, std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
    }
  }
  return std::nullopt;
}

Problem CaseRun::sendText(const Json& step) {
  return sendSlices(step, step["sendText"], false);
}

Problem CaseRun::sendBase64(const Json& step) {
  return sendSlices(step, step["sendBase64"], true);
}

Problem CaseRun::takeMatching(const Json& step, const Json& wanted) {
  Connection* peer = connection(step);
  auto& inbox = peer->inbox();
  const auto find = [&] {
    return std::find_if(inbox.begin(), inbox.end(), [&](const Json& message) { return !mismatch(wanted, message); });
  };
  // With an id of its own a message cannot be followed by a better one.
  const auto spoiled = [&] {
    return wanted.contains("id") && !wanted["id"].is_null() &&
           std::any_of(inbox.begin(), inbox.end(), [&](const Json& message) {
             return message.is_object() && message.contains("id") && message["id"] == wanted["id"];
           });
  };
  Problem problem = peer->waitFor([&] { return find() != inbox.end() || spoiled(); }, deadline(step));
  if (find() == inbox.end()) {
    std::string reasons;
    for (const auto& message : inbox) {
      reasons += "\n  came: " + show(message) + "\n        " + mismatch(wanted, message).value_or("");
    }
    return "expected " + show(wanted) + (problem ? "; " + *problem : "") + reasons;
  }
  const Json message = *find();
  inbox.erase(find());
  return capture(step, message);
}

Problem CaseRun::expect(const Json& step) {
  return takeMatching(step, step["expect"]);
}

Problem CaseRun::expectAll(const Json& step) {
  for (const auto& wanted : step["expectAll"]) {
    if (Problem problem = takeMatching(step, wanted)) {
      return problem;
    }
  }
  return std::nullopt;
}

Problem CaseRun::expectNone(const Json& step) {
  Connection* peer = connection(step);
  const Json id = "fence-" + std::to_string(peer->nextId());
  const Json fence = {{"jsonrpc", "2.0"}, {"id", id}, {"method", "conformance.fence"}};
  if (Problem problem = peer->send(fence, true)) {
    return problem;
  }
  Json wanted = {{"expect", {{"$partial", {{"id", id}}}}}};
  wanted["on"] = step.value("on", "main");
  if (Problem problem = takeMatching(wanted, wanted["expect"])) {
    return problem;
  }
  for (const auto& message : peer->inbox()) {
    if (!mismatch(step["expectNone"], message)) {
      return "expected no such message, came " + show(message);
    }
  }
  return std::nullopt;
}

Problem CaseRun::drop(const Json& step) {
  std::erase_if(connection(step)->inbox(), [&](const Json& message) { return !mismatch(step["drop"], message); });
  return std::nullopt;
}

Problem CaseRun::closeInput(const Json& step) {
  Connection* peer = connection(step);
  if (Problem problem = flush(*peer, step)) {
    return problem;
  }
  peer->process().closeInput();
  return std::nullopt;
}

Problem CaseRun::closeOutput(const Json& step) {
  connection(step)->process().closeOutput();
  return std::nullopt;
}

Problem CaseRun::expectEnd(const Json& step) {
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

Problem CaseRun::signal(const Json& step) {
  static const std::map<std::string, int> numbers = {{"SIGTERM", SIGTERM}, {"SIGINT", SIGINT},   {"SIGKILL", SIGKILL},
                                                     {"SIGPIPE", SIGPIPE}, {"SIGSTOP", SIGSTOP}, {"SIGCONT", SIGCONT}};
  Connection* peer = connection(step);
  if (Problem problem = flush(*peer, step)) {
    return problem;
  }
  peer->process().signal(numbers.at(step["signal"].get<std::string>()));
  return std::nullopt;
}

Problem CaseRun::restart(const Json& step) {
  Connection* peer = connection(step);
  if (step["restart"] == "close") {
    if (Problem problem = closeConnection(*peer, step)) {
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

Problem CaseRun::start(const Json& step) {
  return startConnection(step["start"].get<std::string>(), step.value("args", Json(case_.args)));
}

Problem CaseRun::repeat(const Json& step) {
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

std::optional<int> modeIn(const Json& step) {
  return step.contains("mode") ? std::optional<int>(std::stoi(step["mode"].get<std::string>(), nullptr, 8))
                               : std::nullopt;
}

Problem CaseRun::hostFile(const Json& step) {
  const Json content = step.value("content", Json(""));
  const auto bytes =
      content.is_string() ? content.get<std::string>() : decodeBase64(content["base64"].get<std::string>());
  return bytes ? files_.makeFile(pathIn(step, step["hostFile"]), *bytes, modeIn(step))
               : Problem("the case holds wrong base64");
}

Problem CaseRun::hostLink(const Json& step) {
  return files_.makeLink(pathIn(step, step["hostLink"]), pathIn(step, step["target"]));
}

Problem CaseRun::hostDirectory(const Json& step) {
  return files_.makeDirectory(pathIn(step, step["hostDirectory"]), modeIn(step));
}

Problem CaseRun::hostFifo(const Json& step) {
  return files_.makeFifo(pathIn(step, step["hostFifo"]));
}

Problem CaseRun::hostRemove(const Json& step) {
  return files_.remove(pathIn(step, step["hostRemove"]));
}

Problem CaseRun::hostMode(const Json& step) {
  return files_.setMode(pathIn(step, step["hostMode"]), modeIn(step).value_or(0755));
}

Problem CaseRun::hostTree(const Json& step) {
  return mismatch(step["is"], HostFiles::snapshot(pathIn(step, step["hostTree"])));
}

Problem CaseRun::fifoText(const Json& step) {
  return files_.awaitFifoText(pathIn(step, step["fifoText"]), step["text"].get<std::string>(), deadline(step));
}

Problem CaseRun::fifoEnd(const Json& step) {
  return files_.awaitFifoEnd(pathIn(step, step["fifoEnd"]), deadline(step));
}

}  // namespace

std::optional<Failure> runCase(const Case& testCase, const Contract& contract, const Settings& settings) {
  return CaseRun(testCase, contract, settings).run();
}

}  // namespace conformance
