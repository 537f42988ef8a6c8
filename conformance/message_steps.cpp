#include <algorithm>

#include "conformance/bytes.h"
#include "conformance/matcher.h"
#include "conformance/step_runner.h"

namespace conformance {

using Problem = StepRunner::Problem;

Problem StepRunner::call(const Json& step) {
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

Problem StepRunner::await(const Json& step) {
  const auto found = calls_.find(step["await"].get<std::string>());
  if (found == calls_.end()) {
    return "no call has this name";
  }
  return awaitAnswer(step, found->second);
}

Problem StepRunner::awaitAnswer(const Json& step, const Json& id) {
  Json answer;
  if (Problem problem = takeAnswer(*connection(step), id, deadline(step), answer)) {
    return problem;
  }
  if (answer.contains("result") && answer["result"].is_object() && answer["result"].contains("handle")) {
    handles_.push_back(answer["result"]["handle"]);
  }
  return judgeAnswer(step, answer);
}

Problem StepRunner::takeAnswer(Connection& peer, const Json& id, Deadline until, Json& answer) {
  auto& inbox = peer.inbox();
  const auto find = [&] {
    return std::find_if(inbox.begin(), inbox.end(), [&](const Json& message) {
      return message.is_object() && !message.contains("method") && message.value("id", Json("?")) == id;
    });
  };
  if (Problem problem = peer.waitFor([&] { return find() != inbox.end(); }, until)) {
    return "no answer: " + *problem;
  }
  answer = *find();
  inbox.erase(find());
  return std::nullopt;
}

Problem StepRunner::judgeAnswer(const Json& step, const Json& answer) {
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

Problem StepRunner::capture(const Json& step, const Json& from) {
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

Problem StepRunner::flush(Connection& peer, const Json& step) {
  return peer.waitFor([&] { return peer.process().inputFlushed(); }, deadline(step));
}

Problem StepRunner::send(const Json& step) {
  Connection* peer = connection(step);
  const Problem problem = peer->send(step["send"], step.value("invalid", false));
  return problem ? problem : flush(*peer, step);
}

Problem StepRunner::sendSlices(const Json& step, const Json& slices, bool base64) {
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

Problem StepRunner::sendText(const Json& step) {
  return sendSlices(step, step["sendText"], false);
}

Problem StepRunner::sendBase64(const Json& step) {
  return sendSlices(step, step["sendBase64"], true);
}

Problem StepRunner::takeMatching(const Json& step, const Json& wanted) {
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

Problem StepRunner::expect(const Json& step) {
  return takeMatching(step, step["expect"]);
}

Problem StepRunner::expectAll(const Json& step) {
  for (const auto& wanted : step["expectAll"]) {
    if (Problem problem = takeMatching(step, wanted)) {
      return problem;
    }
  }
  return std::nullopt;
}

Problem StepRunner::expectNone(const Json& step) {
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

Problem StepRunner::drop(const Json& step) {
  std::erase_if(connection(step)->inbox(), [&](const Json& message) { return !mismatch(step["drop"], message); });
  return std::nullopt;
}

}  // namespace conformance
