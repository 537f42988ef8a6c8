#include "command_line.h"

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/positional_options.hpp>
#include <boost/program_options/variables_map.hpp>

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <sstream>
#include <stdexcept>

#include "backend/privilege/user.h"
#include "rpc/base/limits.h"

namespace stitchkit {
namespace {

namespace po = boost::program_options;

constexpr int kUsageError = 64;  // EX_USAGE of sysexits.h

po::options_description describeOptions() {
  po::options_description options("Options");
  auto add = options.add_options();
  add("state-dir", po::value<std::string>()->value_name("DIR"),
      "where templates and sessions are kept\n(default: stitchkit-sandbox below\n"
      "$XDG_STATE_HOME, else ~/.local/state;\nstarted by root, where that user cannot\n"
      "reach it: /var/lib/stitchkit-sandbox)");
  add("name", po::value<std::string>()->default_value("bubblewrap")->value_name("NAME"), "name of the backend");
  add("bwrap", po::value<std::string>()->default_value("/usr/bin/bwrap")->value_name("PATH"), "Bubblewrap");
  add("max-concurrent-commands", po::value<int>()->default_value(limits::kConcurrentCommands)->value_name("N"),
      "live commands a handle, 1 to 1024");
  add("warm", po::value<int>()->default_value(limits::kWarmLaunchesOfHandle)->value_name("N"),
      "launches that wait for commands, a handle, 0 to 64");
  add("ca-file", po::value<std::string>()->value_name("FILE"),
      "certificate authorities in PEM that the network\ngateway trusts beside the system's");
  add("private-origins", po::bool_switch(), "names of allowed origins may lead to private\naddresses");
  add("framing", po::value<std::string>()->default_value("auto")->value_name("KIND"),
      "lines, headers (Content-Length), or auto");
  add("serial", po::bool_switch(), "one request after another, for piped debugging");
  add("max-message-bytes", po::value<std::int64_t>()->default_value(limits::kMessageBytes)->value_name("N"),
      "largest message from the host");
  add("user", po::value<std::string>()->default_value("nobody")->value_name("NAME|UID"),
      "started by root: the user to become");
  add("allow-root", po::bool_switch(), "started by root: stay root (less isolation; see SECURITY.md)");
  add("log-level", po::value<std::string>()->default_value("info")->value_name("LEVEL"),
      "error, warning, info or debug, to stderr");
  add("log-format", po::value<std::string>()->default_value("text")->value_name("FORMAT"),
      "text or json, a line an event");
  add("version", po::bool_switch(), "print the version");
  add("help", po::bool_switch(), "print this help");
  return options;
}

std::string helpText(const po::options_description& options) {
  std::ostringstream text;
  text << "Usage: stitchkit-sandbox [serve] [options]\n\n"
          "Speaks JSON-RPC 2.0 on stdin and stdout: durable workspaces, and commands isolated by Bubblewrap.\n"
          "The method rpc.discover describes the rest. Try:\n\n"
          "  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"rpc.discover\"}' | stitchkit-sandbox\n\n"
       << options;
  return text.str();
}

template <class T>
T chosen(const po::variables_map& values, const char* option, const std::map<std::string, T>& choices) {
  const auto& word = values[option].as<std::string>();
  const auto found = choices.find(word);
  if (found == choices.end()) {
    std::string list;
    for (const auto& [name, value] : choices) {
      list += (list.empty() ? "" : ", ") + name;
    }
    throw std::invalid_argument(std::string("--") + option + " is one of: " + list);
  }
  return found->second;
}

std::int64_t between(std::int64_t number, std::int64_t low, std::int64_t high, const char* option) {
  if (number < low || number > high) {
    throw std::invalid_argument(std::string("--") + option + " is a number from " + std::to_string(low) + " to " +
                                std::to_string(high));
  }
  return number;
}

// Here, so that it is a usage error like any other. Not asked where the user does not matter.
void checkUser(const PrivilegePlan& plan, bool defaulted) {
  if (defaulted || plan.allowRoot || ::geteuid() != 0) {
    return;
  }
  if (const auto user = resolveUser(plan.user); !user) {
    throw std::invalid_argument("--user " + plan.user + ": " + user.error().message + ". " + user.error().hint);
  }
}

CommandLine toCommandLine(const po::variables_map& values) {
  CommandLine line;
  if (values.count("state-dir") != 0) {
    const auto& directory = values["state-dir"].as<std::string>();
    if (directory.empty()) {
      throw std::invalid_argument("--state-dir is empty");
    }
    line.privilege.stateDirectory = std::filesystem::absolute(directory).lexically_normal().string();
  }
  line.privilege.user = values["user"].as<std::string>();
  line.privilege.allowRoot = values["allow-root"].as<bool>();
  checkUser(line.privilege, values["user"].defaulted());
  line.name = values["name"].as<std::string>();
  if (line.name.empty()) {
    throw std::invalid_argument("--name is empty");
  }
  line.bubblewrap = values["bwrap"].as<std::string>();
  line.maxConcurrentCommands = static_cast<int>(between(values["max-concurrent-commands"].as<int>(), 1,
                                                        limits::kConcurrentCommandsMax, "max-concurrent-commands"));
  line.warmLaunches = static_cast<int>(between(values["warm"].as<int>(), 0, limits::kWarmLaunchesOfHandleMax, "warm"));
  if (values.count("ca-file") != 0) {
    line.gateway.caFile = std::filesystem::absolute(values["ca-file"].as<std::string>()).string();
  }
  line.gateway.privateNames = values["private-origins"].as<bool>();
  line.framing = chosen<Framing>(
      values, "framing", {{"auto", Framing::kAuto}, {"lines", Framing::kLines}, {"headers", Framing::kHeaders}});
  line.serial = values["serial"].as<bool>();
  line.maxMessageBytes = static_cast<std::size_t>(
      between(values["max-message-bytes"].as<std::int64_t>(), 1024, std::int64_t{1} << 30, "max-message-bytes"));
  line.logLevel = chosen<LogLevel>(values, "log-level",
                                   {{"error", LogLevel::kError},
                                    {"warning", LogLevel::kWarning},
                                    {"info", LogLevel::kInfo},
                                    {"debug", LogLevel::kDebug}});
  line.logFormat = chosen<LogFormat>(values, "log-format", {{"text", LogFormat::kText}, {"json", LogFormat::kJson}});
  return line;
}

po::variables_map readOptions(int argc, const char* const* argv, const po::options_description& options) {
  po::options_description all;
  all.add(options);
  all.add_options()("command", po::value<std::string>()->default_value("serve"));
  po::positional_options_description positional;
  positional.add("command", 1);
  // No abbreviations: an option added later must not change what a script means.
  const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  po::variables_map values;
  po::store(po::command_line_parser(argc, argv).options(all).positional(positional).style(style).run(), values);
  po::notify(values);
  if (values["command"].as<std::string>() != "serve") {
    throw std::invalid_argument("unknown command " + values["command"].as<std::string>());
  }
  return values;
}

}  // namespace

CommandLineResult parseCommandLine(int argc, const char* const* argv) {
  const po::options_description options = describeOptions();
  CommandLineResult result;
  try {
    const po::variables_map values = readOptions(argc, argv, options);
    if (values["help"].as<bool>()) {
      result.standardOutput = helpText(options);
    } else if (values["version"].as<bool>()) {
      result.standardOutput = "stitchkit-sandbox " STITCHKIT_VERSION "\n";
    } else {
      result.serve = toCommandLine(values);
    }
  } catch (const std::exception& fault) {
    result.exitCode = kUsageError;
    result.standardError = std::string("stitchkit-sandbox: ") + fault.what() + "\nTry stitchkit-sandbox --help.\n";
  }
  return result;
}

}  // namespace stitchkit
