// Answers each line with its own parameters. Some methods do something else first; see below.
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <iostream>
#include <string>

int main() {
  using Json = nlohmann::json;
  for (std::string line; std::getline(std::cin, line);) {
    const Json message = Json::parse(line);
    const std::string method = message.at("method");
    Json answer{{"jsonrpc", "2.0"}, {"id", message.value("id", Json())}};
    if (method == "exit") {
      return message.at("params").at("code");
    }
    if (method == "user") {
      answer["result"] = {{"uid", ::getuid()}, {"gid", ::getgid()}, {"groups", ::getgroups(0, nullptr)}};
    } else if (method == "fail") {
      answer["error"] = {{"code", -32002}, {"message", "busy"}, {"data", {{"code", "SANDBOX_BUSY"}}}};
    } else if (method == "ask") {
      std::cout << Json{{"jsonrpc", "2.0"}, {"id", "s1"}, {"method", "host.authorize"}}.dump() << '\n';
      answer["result"] = Json::object();
    } else if (method == "announce") {
      std::cout << Json{{"jsonrpc", "2.0"}, {"method", "process.exit"}, {"params", message.at("params")}}.dump()
                << '\n';
      answer["result"] = Json::object();
    } else {
      answer["result"] = message.value("params", Json::object());
    }
    std::cerr << "answered " << method << '\n';
    std::cout << answer.dump() << std::endl;
  }
  return 0;
}
