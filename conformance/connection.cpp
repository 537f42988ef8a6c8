#include "conformance/connection.h"

namespace conformance {
namespace {

using Problem = std::optional<std::string>;

constexpr const char* kCancel = "$/cancelRequest";

bool canBeId(const Json& value) {
  return value.is_string() || value.is_number_integer() || value.is_null();
}

bool isRequest(const Json& message) {
  return message.is_object() && message.contains("id") && canBeId(message["id"]) && message.contains("method");
}

}  // namespace

Connection::Connection(std::unique_ptr<Process> process, const Contract& contract, Framing framing,
                       std::string secretPath)
    : process_(std::move(process)),
      contract_(contract),
      framing_(framing),
      secretPath_(std::move(secretPath)),
      reader_(framing) {}

Problem Connection::send(const Json& message, bool deliberatelyInvalid) {
  const Json batch = message.is_array() ? message : Json::array({message});
  for (const auto& member : batch) {
    if (!deliberatelyInvalid && member.contains("method")) {
      const Json params = member.value("params", Json::object());
      if (Problem problem = contract_.checkParams(member["method"].get<std::string>(), params)) {
        return "the case sends what the document refuses, without \"invalid\": " + *problem;
      }
    }
    if (Problem problem = judgeOwnAnswer(member, deliberatelyInvalid)) {
      return problem;
    }
    remember(member);
  }
  process_->send(encodeFrame(framing_, message.dump()));
  return std::nullopt;
}

Problem Connection::judgeOwnAnswer(const Json& answer, bool deliberatelyInvalid) {
  if (!answer.is_object() || answer.contains("method") || !answer.contains("id")) {
    return std::nullopt;
  }
  const auto asked = asked_.find(keyOf(answer["id"]));
  if (asked == asked_.end()) {
    return deliberatelyInvalid ? Problem() : Problem("the case answers a request that has not come");
  }
  const std::string method = asked->second;
  asked_.erase(asked);
  const Problem problem = answer.contains("error") ? contract_.checkError(method, answer["error"])
                                                   : contract_.checkResult(method, answer.value("result", Json()));
  if (deliberatelyInvalid) {
    return problem ? Problem() : Problem("the case says \"invalid\", but the document allows this answer");
  }
  return problem ? "the case answers what the document refuses, without \"invalid\": " + *problem : Problem();
}

void Connection::sendRaw(std::string_view bytes) {
  sentRaw_ = true;
  process_->send(bytes);
  rememberLines(bytes);
}

void Connection::remember(const Json& message) {
  if (!isRequest(message)) {
    return;
  }
  const bool known = message["method"].is_string() && contract_.knows(message["method"].get<std::string>());
  pending_.emplace(keyOf(message["id"]), known ? message["method"].get<std::string>() : std::string());
}

void Connection::rememberLines(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    std::string problem;
    if (const auto message = parseStrict(bytes.substr(0, end), problem)) {
      for (const auto& member : message->is_array() ? *message : Json::array({*message})) {
        remember(member);
      }
    }
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
}

Problem Connection::waitFor(const std::function<bool()>& found, Deadline deadline) {
  Problem problem;
  const bool done = process_->wait(
      [&] {
        problem = receive();
        return problem || found() || process_->outputEnded();
      },
      deadline);
  if (problem) {
    return problem;
  }
  if (found()) {
    return std::nullopt;
  }
  return done ? "the implementation closed its output" : "the time was up";
}

Problem Connection::waitForEnd(Deadline deadline) {
  Problem problem;
  const bool done = process_->wait(
      [&] {
        problem = receive();
        return problem || (process_->outputEnded() && process_->ended());
      },
      deadline);
  if (problem) {
    return problem;
  }
  if (!done) {
    return "the implementation did not end in time";
  }
  return reader_.rest().empty() ? Problem() : "the output ends in a part of a message: " + std::string(reader_.rest());
}

Problem Connection::takeArrived() {
  Problem problem;
  (void)process_->wait(
      [&] {
        problem = receive();
        return true;
      },
      std::chrono::steady_clock::now());
  return problem;
}

Problem Connection::receive() {
  reader_.feed(process_->takeOutput());
  for (;;) {
    std::string problem;
    const auto text = reader_.next(problem);
    if (!problem.empty()) {
      return problem;
    }
    if (!text) {
      return std::nullopt;
    }
    auto message = parseStrict(*text, problem);
    if (!message) {
      return "stdout holds what is no message: " + problem + ": " + show(Json(*text));
    }
    for (const auto& secret : secrets_) {
      if (text->find(secret) != std::string::npos) {
        return "a message holds a secret: " + show(*message);
      }
    }
    if (Problem wrong = judge(*message)) {
      return "a message breaks the contract: " + *wrong + "\n  the message: " + show(*message);
    }
    Problem wrong;
    if (!offerToHost(*message, wrong)) {
      inbox_.push_back(std::move(*message));
    }
    if (wrong) {
      return wrong;
    }
  }
}

bool Connection::offerToHost(const Json& request, Problem& problem) {
  const bool cancels = request.is_object() && request.value("method", "") == kCancel;
  if (!host_ || (!isRequest(request) && !cancels)) {
    return false;
  }
  const auto reply = host_(request["method"].get<std::string>(), request["params"]);
  if (reply && reply->outcome && !cancels) {
    Json answer = *reply->outcome;
    answer["jsonrpc"] = "2.0";
    answer["id"] = request["id"];
    problem = send(answer, reply->invalid);
  }
  return reply.has_value();
}

Problem Connection::judge(const Json& message) {
  if (message.is_array()) {
    if (message.empty()) {
      return "an empty batch";
    }
    for (const auto& member : message) {
      if (Problem problem = judgeAnswer(member)) {
        return problem;
      }
    }
    return std::nullopt;
  }
  if (message.is_object() && message.contains("method") && !message.contains("id")) {
    const bool shaped = message.size() == 3 && message.value("jsonrpc", "") == "2.0" && message.contains("params") &&
                        message["method"].is_string();
    return shaped ? judgeNotification(message["method"].get<std::string>(), message["params"])
                  : Problem("a notification has jsonrpc, method and params, and nothing else");
  }
  return isRequest(message) ? judgeHostRequest(message) : judgeAnswer(message);
}

Problem Connection::judgeNotification(const std::string& method, const Json& params) const {
  if (method != kCancel) {
    return contract_.checkNotification(method, params);
  }
  // Part of the protocol in both directions. Our answer may have crossed it.
  if (Problem problem = contract_.checkParams(method, params)) {
    return problem;
  }
  return everAsked_.contains(keyOf(params["id"])) ? Problem() : Problem("a request that never came is cancelled");
}

Problem Connection::judgeHostRequest(const Json& request) {
  const bool shaped = request.size() == 4 && request.value("jsonrpc", "") == "2.0" && request["method"].is_string() &&
                      request.contains("params");
  if (!shaped) {
    return "a request has jsonrpc, id, method and params, and nothing else";
  }
  const auto method = request["method"].get<std::string>();
  if (!asked_.emplace(keyOf(request["id"]), method).second) {
    return "a request with the id of one that waits for its answer";
  }
  everAsked_.insert(keyOf(request["id"]));
  return contract_.checkHostRequest(method, request["params"]);
}

Problem Connection::judgeAnswer(const Json& answer) {
  const bool shaped = answer.is_object() && answer.size() == 3 && answer.contains("jsonrpc") &&
                      answer["jsonrpc"] == "2.0" && answer.contains("id") && canBeId(answer["id"]) &&
                      answer.contains("result") != answer.contains("error");
  if (!shaped) {
    return "an answer has jsonrpc, id, and either result or error, and nothing else";
  }
  const auto asked = pending_.find(keyOf(answer["id"]));
  if (asked == pending_.end()) {
    const bool mayBe = sentRaw_ || (answer["id"].is_null() && answer.contains("error"));
    return mayBe ? judgeOutcome("", answer) : Problem("an answer to an id that waits for none");
  }
  // An error with id null need not be the answer to a request whose id is null.
  const std::string method = answer["id"].is_null() && answer.contains("error") ? "" : asked->second;
  pending_.erase(asked);
  return judgeOutcome(method, answer);
}

Problem Connection::judgeOutcome(const std::string& method, const Json& answer) {
  if (answer.contains("error")) {
    if (answer["error"].dump(-1, ' ', false, Json::error_handler_t::replace).find(secretPath_) != std::string::npos) {
      return "an error names a path of the host";
    }
    return contract_.checkError(method, answer["error"]);
  }
  return method.empty() ? Problem() : contract_.checkResult(method, answer["result"]);
}

}  // namespace conformance
