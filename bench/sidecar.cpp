#include "bench/sidecar.h"

#include <nlohmann/json.hpp>

#include <stdexcept>

namespace stitchkit::bench {

using nlohmann::json;

std::string requestLine(std::string_view method, const json& params, int id) {
  return json{{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}}.dump() + '\n';
}

void expectResult(std::string_view answer) {
  if (answer.substr(0, 64).find("\"result\"") == std::string_view::npos) {
    throw std::runtime_error("the sidecar answered " + std::string(answer.substr(0, 1000)));
  }
}

namespace {

std::vector<std::string> commandLine(const std::string& program, const std::string& stateDirectory,
                                     const std::vector<std::string>& options) {
  std::vector<std::string> argv{program, "--state-dir", stateDirectory};
  argv.insert(argv.end(), options.begin(), options.end());
  return argv;
}

}  // namespace

Sidecar::Sidecar(const std::string& program, const std::string& stateDirectory, Transport transport,
                 const std::vector<std::string>& options)
    : channel_(transport),
      child_(commandLine(program, stateDirectory, options), channel_.childInput(), channel_.childOutput(), -1) {
  channel_.closeChildEnds();
}

std::string_view Sidecar::exchange(std::string_view line) {
  channel_.send(line);
  const std::string_view answer = channel_.receive();
  expectResult(answer);
  return answer;
}

json Sidecar::call(std::string_view method, const json& params) {
  return json::parse(exchange(requestLine(method, params))).at("result");
}

json Sidecar::answer(std::string_view method, const json& params) {
  channel_.send(requestLine(method, params));
  return json::parse(channel_.receive());
}

void Sidecar::end() {
  channel_.closeInput();
  if (const int code = child_.wait(); code != 0) {
    throw std::runtime_error("the sidecar exited with " + std::to_string(code));
  }
}

}  // namespace stitchkit::bench
