#include "gateway/forwarding.h"

#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <boost/algorithm/string/trim.hpp>
#include <boost/beast/http/status.hpp>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "gateway/header_fields.h"
#include "gateway/request_target.h"

namespace stitchkit {
namespace {

constexpr std::string_view kUserAgent = "stitchkit-sandbox";

bool contains(const std::vector<std::string>& sorted, std::string_view name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

// Fields that a message's Connection calls the affair of this one connection (RFC 9110, 7.6.1).
std::set<std::string, std::less<>> namedByConnection(const std::vector<HeaderField>& fields) {
  std::set<std::string, std::less<>> names;
  for (const HeaderField& field : fields) {
    if (field.name != "connection") {
      continue;
    }
    std::vector<std::string> tokens;
    boost::algorithm::split(tokens, field.value, boost::algorithm::is_any_of(","));
    for (std::string& token : tokens) {
      boost::algorithm::trim(token);
      names.insert(lowerCaseAscii(token));
    }
  }
  return names;
}

bool travels(const Rule& rule, std::string_view name) {
  return name == "content-type" || name == "accept" || contains(rule.requestHeaders, name);
}

bool isInjected(const Rule& rule, std::string_view name) {
  return std::any_of(rule.headers.begin(), rule.headers.end(),
                     [name](const HeaderField& field) { return field.name == name; });
}

bool isControlFree(std::string_view value) {
  return std::none_of(value.begin(), value.end(),
                      [](char c) { return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f'; });
}

std::string responseHead(unsigned status, bool keepAlive) {
  const boost::beast::string_view words =
      boost::beast::http::obsolete_reason(boost::beast::http::int_to_status(status));
  return "HTTP/1.1 " + std::to_string(status) + " " + std::string(words) +
         "\r\nconnection: " + (keepAlive ? "keep-alive" : "close") + "\r\n";
}

}  // namespace

Refusal deniedRefusal() {
  return {403, "Sandbox network denied", {}, {}};
}

Refusal busyRefusal() {
  return {503, "Sandbox broker busy", {}, {}};
}

Refusal upstreamRefusal(std::string reason, std::string origin) {
  return {502, "Sandbox upstream request failed", std::move(reason), std::move(origin)};
}

Refusal framingRefusal(unsigned status) {
  switch (status) {
    case 408:
      return {408, "The request took too long", {}, {}};
    case 413:
      return {413, "The request body is larger than the sandbox allows", {}, {}};
    case 417:
      return {417, "The only expectation is 100-continue", {}, {}};
    case 431:
      return {431, "The request header is larger than 16 KiB or 100 fields", {}, {}};
    default:
      return {400, "The request is not valid HTTP/1.1", {}, {}};
  }
}

bool isTunnelMethod(std::string_view method) noexcept {
  return method == "CONNECT" || method == "PRI";
}

std::variant<Admission, Refusal> admit(const GuestRequest& request, const NetworkPolicy& policy) {
  if (isTunnelMethod(request.method) || request.count("host") != 1) {
    return deniedRefusal();
  }
  if (request.count("content-type") > 1) {
    return framingRefusal(400);
  }
  const Rule* rule = policy.ruleFor(canonicalHostHeader(request.first("host")));
  if (rule == nullptr || (rule->methods && !rule->allowsMethod(request.method))) {
    return deniedRefusal();
  }
  const auto target = parseRequestTarget(request.target);
  if (!target) {
    switch (target.error()) {
      case TargetFault::kMalformed:
        return framingRefusal(400);
      case TargetFault::kNotOriginForm:
        return deniedRefusal();
      case TargetFault::kBackslash:
        return upstreamRefusal("The target holds a backslash", rule->origin.text());
    }
  }
  if (!rule->allowsPath(target->path) || (rule->pathPrefixes && pathIsAmbiguous(target->path))) {
    return deniedRefusal();
  }
  // TRACE sends the credential back by definition.
  if (request.method == "TRACE") {
    return upstreamRefusal("TRACE is never passed on", rule->origin.text());
  }
  // Some servers take such a body for the next request.
  if (request.hasBody() && (request.method == "GET" || request.method == "HEAD")) {
    return upstreamRefusal(request.method + " with a body is not passed on", rule->origin.text());
  }
  return Admission{rule, target->text()};
}

UpstreamRequest upstreamRequest(const GuestRequest& request, const Admission& admission) {
  const Rule& rule = *admission.rule;
  UpstreamRequest made;
  made.method = request.method;
  made.target = admission.target;
  made.body = request.body;
  made.fields.push_back({"host", rule.origin.authority()});
  const auto own = namedByConnection(request.fields);
  for (const HeaderField& field : request.fields) {
    if (travels(rule, field.name) && !isInjected(rule, field.name) && !own.contains(field.name)) {
      made.fields.push_back(field);
    }
  }
  made.fields.insert(made.fields.end(), rule.headers.begin(), rule.headers.end());
  const auto has = [&](std::string_view name) {
    return std::any_of(made.fields.begin(), made.fields.end(),
                       [name](const HeaderField& field) { return field.name == name; });
  };
  // A coding that the gateway cannot look into would hide a reflected value.
  made.fields.push_back({"accept-encoding", "identity"});
  if (!has("user-agent")) {
    made.fields.push_back({"user-agent", std::string(kUserAgent)});
  }
  return made;
}

std::string guestResponse(const UpstreamResponse& response, const Rule& rule, bool toHead, bool keepAlive) {
  std::string text = responseHead(response.status, keepAlive);
  std::string length;
  const auto own = namedByConnection(response.fields);
  for (const HeaderField& field : response.fields) {
    if (field.name == "content-length") {
      length = field.value;
    } else if ((field.name == "content-type" || contains(rule.responseHeaders, field.name)) &&
               isControlFree(field.value) && !own.contains(field.name)) {
      text += field.name + ": " + field.value + "\r\n";
    }
  }
  if (!toHead) {
    length = std::to_string(response.body.size());
  }
  if (!length.empty() && response.status != 204 && response.status != 304) {
    text += "content-length: " + length + "\r\n";
  }
  text += "\r\n";
  if (!toHead) {
    text += response.body;
  }
  return text;
}

std::string guestResponse(const Refusal& refusal, bool toHead, bool keepAlive) {
  return responseHead(refusal.status, keepAlive) +
         "content-type: text/plain; charset=utf-8\r\ncontent-length: " + std::to_string(refusal.body.size()) +
         "\r\n\r\n" + (toHead ? "" : refusal.body);
}

}  // namespace stitchkit
