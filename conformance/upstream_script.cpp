#include "conformance/upstream_script.h"

#include <algorithm>

#include "conformance/bytes.h"

namespace conformance {
namespace {

using Problem = std::optional<std::string>;
using Kind = AnswerAction::Kind;

std::string percentEncoded(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string text;
  for (const char byte : bytes) {
    text += '%';
    text += kDigits[static_cast<unsigned char>(byte) >> 4U];
    text += kDigits[static_cast<unsigned char>(byte) & 15U];
  }
  return text;
}

/// What a part with `saw` stands for: something of the request, in a coat.
std::string echoOf(const Json& part, const HttpMessage& request) {
  const auto name = part["saw"].get<std::string>();
  const std::string seen = name == "headers"  ? describeFields(request).dump()
                           : name == "body"   ? request.body
                           : name == "target" ? request.target
                                              : request.field(name);
  const std::string coated = part.value("before", "") + seen + part.value("after", "");
  const std::string as = part.value("as", "text");
  return as == "base64" ? encodeBase64(coated) : as == "percent" ? percentEncoded(coated) : coated;
}

Problem bytesOf(const Json& part, const HttpMessage& request, std::string& bytes) {
  if (part.is_string()) {
    bytes += part.get_ref<const std::string&>();
  } else if (part.contains("saw")) {
    bytes += echoOf(part, request);
  } else {
    const auto decoded = decodeBase64(part["base64"].get<std::string>());
    if (!decoded) {
      return "the case holds wrong base64";
    }
    bytes += *decoded;
  }
  return std::nullopt;
}

Json listOf(const Json& parts) {
  return parts.is_array() ? parts : Json::array({parts});
}

/// Joined; there must be no waits among them.
Problem joined(const Json& parts, const HttpMessage& request, std::string& bytes) {
  for (const auto& part : listOf(parts)) {
    if (part.is_object() && part.contains("await")) {
      return "an upstream can wait in raw and in chunks, not here";
    }
    if (Problem problem = bytesOf(part, request, bytes)) {
      return problem;
    }
  }
  return std::nullopt;
}

/// Each part a slice of its own. @param chunked  as a chunk
Problem planParts(const Json& parts, const HttpMessage& request, bool chunked, AnswerPlan& plan) {
  for (const auto& part : listOf(parts)) {
    if (part.is_object() && part.contains("await")) {
      plan.actions.push_back({Kind::kAwait, part["await"].get<std::string>()});
      continue;
    }
    std::string bytes;
    if (Problem problem = bytesOf(part, request, bytes)) {
      return problem;
    }
    if (chunked) {
      char size[32];
      std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
      bytes = size + bytes + "\r\n";
    }
    plan.actions.push_back({Kind::kSend, std::move(bytes)});
  }
  return std::nullopt;
}

/// `{saw}` in pieces of `every` bytes, for chunks that cut through what they hold.
Problem splitParts(const Json& answer, const HttpMessage& request, Json& pieces) {
  std::string whole;
  if (Problem problem = joined(answer["chunks"], request, whole)) {
    return problem;
  }
  const auto every = answer["every"].get<std::size_t>();
  for (std::size_t at = 0; at < whole.size(); at += every) {
    pieces.push_back({{"base64", encodeBase64(std::string_view(whole).substr(at, every))}});
  }
  return std::nullopt;
}

Problem headOf(const Json& answer, const HttpMessage& request, std::string& head) {
  head = "HTTP/1.1 " + std::to_string(answer.value("status", 200)) + " Said\r\n";
  const Json headers = answer.value("headers", Json::array());
  for (const auto& header : headers) {
    std::string value;
    if (Problem problem = joined(header[1], request, value)) {
      return problem;
    }
    head += header[0].get<std::string>() + ": " + value + "\r\n";
  }
  return std::nullopt;
}

Problem planChunked(const Json& answer, const HttpMessage& request, const std::string& head, AnswerPlan& plan) {
  plan.actions.push_back({Kind::kSend, head + "Transfer-Encoding: chunked\r\n\r\n"});
  Json pieces = Json::array();
  if (answer.contains("every")) {
    if (Problem problem = splitParts(answer, request, pieces)) {
      return problem;
    }
  } else {
    pieces = answer["chunks"];
  }
  if (Problem problem = planParts(pieces, request, true, plan)) {
    return problem;
  }
  plan.actions.push_back({Kind::kSend, "0\r\n\r\n"});
  return std::nullopt;
}

Problem planFramed(const Json& answer, const HttpMessage& request, AnswerPlan& plan) {
  std::string head;
  if (Problem problem = headOf(answer, request, head)) {
    return problem;
  }
  if (answer.contains("chunks")) {
    return planChunked(answer, request, head, plan);
  }
  std::string body;
  if (Problem problem = joined(answer.value("body", Json("")), request, body)) {
    return problem;
  }
  const int status = answer.value("status", 200);
  if (status != 204 && status != 304) {
    head += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  }
  plan.actions.push_back({Kind::kSend, head + "\r\n" + (request.method == "HEAD" ? "" : body)});
  return std::nullopt;
}

}  // namespace

UpstreamScript::UpstreamScript(const Json& described)
    : answers_(described.value("answers", Json::array())), targets_(described.value("targets", Json::object())) {
  if (answers_.empty()) {
    answers_ = Json::array({{{"body", "ok"}}});
  }
}

Problem UpstreamScript::next(const HttpMessage& request, AnswerPlan& plan) {
  const auto target = targets_.find(request.target);
  const Json answer = target != targets_.end() ? *target : answers_[std::min(given_++, answers_.size() - 1)];
  if (answer.contains("await")) {
    plan.actions.push_back({Kind::kAwait, answer["await"].get<std::string>()});
  }
  const std::string then = answer.value("then", "keep");
  plan.after = then == "close" ? AfterAnswer::kClose : then == "reset" ? AfterAnswer::kReset : AfterAnswer::kKeep;
  return answer.contains("raw") ? planParts(answer["raw"], request, false, plan) : planFramed(answer, request, plan);
}

}  // namespace conformance
