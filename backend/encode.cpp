#include <boost/json/array.hpp>

#include "backend/requests.h"
#include "rpc/base/base64.h"
#include "rpc/base/limits.h"
#include "rpc/base/utf8.h"
#include "schema/openrpc.h"

namespace stitchkit {
namespace {

namespace json = boost::json;

// PROTOCOL.md, 6: where guests find the gateway.
constexpr const char* kBrokerSocket = "/run/stitchkit-network.sock";

json::array strings(const std::vector<std::string>& list) {
  json::array array;
  for (const std::string& item : list) {
    array.push_back(json::string(item));
  }
  return array;
}

json::object base64(const std::string& bytes) {
  return {{"base64", encodeBase64(bytes)}};
}

// Says which limit of the session stood in the program's way.
json::object withResource(json::object result, const std::string& resource) {
  if (!resource.empty()) {
    result["details"] = json::object{{"resource", resource}};
  }
  return result;
}

}  // namespace

json::value encode(Done) {
  return json::object();
}

json::value encode(DiscoverResult) {
  return OpenRpc::instance().document();
}

json::value encode(InitializeResult result) {
  return {{"protocolVersion", 1},
          {"server", {{"name", "stitchkit-sandbox"}, {"version", STITCHKIT_VERSION}}},
          {"backend", {{"name", result.backendName}}},
          {"limits",
           {{"maxMessageBytes", result.maxMessageBytes},
            {"maxFileBytes", limits::kSessionFileBytes},
            {"maxConcurrentCommands", result.maxConcurrentCommands},
            {"maxRequestsInFlight", limits::kRequestsInFlight},
            {"maxCommandOutputBytes", limits::kCommandOutputBytesMax},
            {"maxMessageValues", limits::kMessageValues},
            {"maxBatchMembers", limits::kBatchMembers}}}};
}

json::value encode(PrewarmResult result) {
  return {{"reused", result.reused}, {"templateKey", result.templateKey}};
}

json::value encode(SessionState result) {
  return {{"backend", result.backend}, {"sessionId", result.sessionId}, {"templateKey", result.templateKey}};
}

json::value encode(Grade result) {
  if (result.unavailable) {
    return {{"grade", "unavailable"}, {"reason", *result.unavailable}};
  }
  json::object grade{{"grade", result.gaps.empty() ? "full" : "partial"},
                     {"restrictions", strings(result.restrictions)}};
  if (!result.gaps.empty()) {
    grade["gaps"] = strings(result.gaps);
  }
  return grade;
}

json::value encode(CreateResult result) {
  return {{"handle", result.handle},
          {"session", {{"id", result.state.sessionId}, {"brokerSocket", kBrokerSocket}}},
          {"state", encode(result.state)},
          {"grade", encode(std::move(result.grade))}};
}

json::value encode(PathResult result) {
  return {{"path", result.path}};
}

json::value encode(BinaryFile result) {
  return {{"base64", encodeBase64(result.bytes)}, {"bytes", result.bytes.size()}};
}

json::value encode(TextFile result) {
  return {{"text", result.text}};
}

json::value encode(Written result) {
  return {{"bytes", result.bytes}};
}

json::value encode(RunResult result) {
  const auto channel = [&](const std::string& bytes) -> json::value {
    return result.base64 ? json::value(base64(bytes)) : json::value(toUtf8(bytes));
  };
  return withResource({{"exitCode", result.exitCode},
                       {"stdout", channel(result.standardOutput)},
                       {"stderr", channel(result.standardError)}},
                      result.resource);
}

json::value encode(ProcessStarted result) {
  return {{"process", result.process}};
}

json::value encode(ProcessResult result) {
  return withResource({{"exitCode", result.exitCode},
                       {"stdout", base64(result.standardOutput)},
                       {"stderr", base64(result.standardError)}},
                      result.resource);
}

json::value encode(PolicyResult result) {
  return {{"grade", encode(std::move(result.grade))}};
}

}  // namespace stitchkit
