#include "tests/attacks/tool_client.h"

namespace stitchkit::testing {

ToolClient::ToolClient(Sidecar& sidecar, const Session& session, Json rules) : sidecar_(sidecar) {
  rules["handle"] = session.handle();
  if (!rules.contains("authorize")) {
    rules["authorize"] = "allow";
  }
  toolset_ = sidecar_.call("coding.create", std::move(rules)).at("toolset");
}

std::int64_t ToolClient::request(const std::string& tool, Json input) {
  return sidecar_.request("coding." + tool, {{"toolset", toolset_}, {"input", std::move(input)}});
}

Json ToolClient::answer(const std::string& tool, Json input, Milliseconds within) {
  return sidecar_.response(request(tool, std::move(input)), within);
}

Json ToolClient::call(const std::string& tool, Json input, Milliseconds within) {
  return sidecar_.call("coding." + tool, {{"toolset", toolset_}, {"input", std::move(input)}}, within);
}

std::string codeOf(const Json& answer) {
  return answer.value("/error/data/code"_json_pointer, "");
}

void answerHost(Sidecar& sidecar, const Json& request, Json result) {
  sidecar.sendRaw(Json{{"jsonrpc", "2.0"}, {"id", request.at("id")}, {"result", std::move(result)}}.dump() + "\n");
}

}  // namespace stitchkit::testing
