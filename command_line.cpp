#include "command_line.h"

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/positional_options.hpp>
#include <boost/program_options/variables_map.hpp>

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "backend/privilege/user.h"
#include "rpc/base/limits.h"
#include "rpc/base/utf8.h"

namespace stitchkit {
namespace {

namespace po = boost::program_options;

using AskedCommand = decltype(CommandLineResult::command);

constexpr int kUsageError = 64;  // EX_USAGE of sysexits.h

// What several commands have; under one name an option is the same in all of them.
void addPlaceOptions(po::options_description& options) {
  auto add = options.add_options();
  add("state-dir", po::value<std::string>()->value_name("DIR"),
      "where templates and sessions are kept\n(default: stitchkit-sandbox below\n"
      "$XDG_STATE_HOME, else ~/.local/state;\nstarted by root, where that user cannot\n"
      "reach it: /var/lib/stitchkit-sandbox)");
  add("user", po::value<std::string>()->default_value("nobody")->value_name("NAME|UID"),
      "started by root: the user to become");
  add("cgroup", po::value<std::string>()->value_name("PATH|none"),
      "where control groups for resources may be\nmade (default: in the sidecar's own)");
  add("allow-root", po::bool_switch(), "started by root: stay root (less isolation; see SECURITY.md)");
}

void addBubblewrapOption(po::options_description& options) {
  options.add_options()("bwrap", po::value<std::string>()->default_value("/usr/bin/bwrap")->value_name("PATH"),
                        "Bubblewrap");
}

void addCommonOptions(po::options_description& options) {
  auto add = options.add_options();
  add("version", po::bool_switch(), "print the version");
  add("help", po::bool_switch(), "print this help");
}

void addServeOptions(po::options_description& options) {
  addPlaceOptions(options);
  addBubblewrapOption(options);
  auto add = options.add_options();
  add("name", po::value<std::string>()->default_value("bubblewrap")->value_name("NAME"), "name of the backend");
  add("max-concurrent-commands", po::value<int>()->default_value(limits::kConcurrentCommands)->value_name("N"),
      "live commands a handle, 1 to 1024");
  add("warm", po::value<int>()->default_value(limits::kWarmLaunchesOfHandle)->value_name("N"),
      "launches that wait for commands, a handle, 0 to 64");
  add("ca-file", po::value<std::string>()->value_name("FILE"),
      "certificate authorities in PEM that the network\ngateway trusts beside the system's");
  add("private-origins", po::bool_switch(), "names of allowed origins may lead to private\naddresses");
  add("framing", po::value<std::string>()->default_value("auto")->value_name("KIND"),
      "lines, headers (Content-Length), or auto");
  add("durability", po::value<std::string>()->default_value("process")->value_name("LEVEL"),
      "what outlives a loss of power once it was\nanswered: nothing surely (process), the content\n"
      "of files (file), their names as well (directory)");
  add("serial", po::bool_switch(), "one request after another, for piped debugging");
  add("max-message-bytes", po::value<std::int64_t>()->default_value(limits::kMessageBytes)->value_name("N"),
      "largest message from the host");
  add("log-level", po::value<std::string>()->default_value("info")->value_name("LEVEL"),
      "error, warning, info or debug, to stderr");
  add("log-format", po::value<std::string>()->default_value("text")->value_name("FORMAT"),
      "text or json, a line an event");
}

void addDoctorOptions(po::options_description& options) {
  addPlaceOptions(options);
  addBubblewrapOption(options);
  options.add_options()("json", po::bool_switch(), "one JSON document instead of text");
}

void addGcOptions(po::options_description& options) {
  addPlaceOptions(options);
  auto add = options.add_options();
  add("name", po::value<std::string>()->value_name("NAME"),
      "only this backend's (default: all of the state\ndirectory)");
  add("older-than", po::value<std::string>()->value_name("AGE"),
      "also sessions not used for so long: 30d, 12h,\n90m or 45s");
  add("dry-run", po::bool_switch(), "change nothing, say what would be removed");
  add("json", po::bool_switch(), "one JSON document instead of text");
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

PrivilegePlan readPlace(const po::variables_map& values) {
  PrivilegePlan plan;
  if (values.count("state-dir") != 0) {
    const auto& directory = values["state-dir"].as<std::string>();
    if (directory.empty()) {
      throw std::invalid_argument("--state-dir is empty");
    }
    plan.stateDirectory = std::filesystem::absolute(directory).lexically_normal().string();
  }
  plan.user = values["user"].as<std::string>();
  plan.allowRoot = values["allow-root"].as<bool>();
  if (values.count("cgroup") != 0) {
    const auto& path = values["cgroup"].as<std::string>();
    plan.cgroups.off = path == "none";
    plan.cgroups.path = path;
    if (!plan.cgroups.off && path.substr(0, 1) != "/") {
      throw std::invalid_argument("--cgroup is an absolute path, or none");
    }
  }
  checkUser(plan, values["user"].defaulted());
  return plan;
}

AskedCommand readServe(const po::variables_map& values) {
  ServeCommand line;
  line.privilege = readPlace(values);
  line.name = values["name"].as<std::string>();
  if (line.name.empty() || !isUtf8(line.name)) {
    throw std::invalid_argument("--name has to be UTF-8, and not empty");
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
  line.durability = Durability(chosen<Durability::Level>(values, "durability",
                                                         {{"process", Durability::Level::kProcess},
                                                          {"file", Durability::Level::kFile},
                                                          {"directory", Durability::Level::kDirectory}}));
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

AskedCommand readDoctor(const po::variables_map& values) {
  return DoctorPlan{readPlace(values), values["bwrap"].as<std::string>(), values["json"].as<bool>()};
}

AskedCommand readGc(const po::variables_map& values) {
  GcPlan plan;
  plan.privilege = readPlace(values);
  if (!values["name"].defaulted()) {
    plan.backendName = values["name"].as<std::string>();
  }
  if (values.count("older-than") != 0) {
    plan.olderThan = parseAge(values["older-than"].as<std::string>());
    if (!plan.olderThan) {
      throw std::invalid_argument("--older-than is a number and a unit: 30d, 12h, 90m or 45s");
    }
  }
  plan.dryRun = values["dry-run"].as<bool>();
  plan.json = values["json"].as<bool>();
  return plan;
}

struct CommandEntry {
  std::string_view name;
  const char* about;  ///< of the help: what it does
  void (*addOptions)(po::options_description&);
  AskedCommand (*read)(const po::variables_map&);  ///< throws std::exception for what cannot be
};

// The first is the default.
constexpr CommandEntry kCommands[] = {
    {"serve",
     "Speaks JSON-RPC 2.0 on stdin and stdout: durable workspaces, and commands isolated by Bubblewrap.\n"
     "The method rpc.discover describes the rest. Try:\n\n"
     "  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"rpc.discover\"}' | stitchkit-sandbox\n",
     addServeOptions, readServe},
    {"doctor",
     "Says whether isolation works here, by making a session as the sidecar does, and if not, what to do.\n"
     "Give it the options that the sidecar is started with, and start it as the same user. Exit status: 0 when\n"
     "isolation works, 1 when it does not. With --json:\n\n"
     "  {\"ok\": true, \"version\": \"0.1.0\", \"checks\": [{\"name\": \"bubblewrap\", \"status\": \"ok\", "
     "\"message\": \"...\"},\n"
     "   {\"name\": \"cgroups\", \"status\": \"warning\", \"cause\": \"no-cgroup\", \"message\": \"...\", "
     "\"hint\": \"...\"}]}\n\n"
     "status is ok, warning or failed; cause is a stable word, that of reason in SANDBOX_UNAVAILABLE.\n",
     addDoctorOptions, readDoctor},
    {"gc",
     "Removes from the state directory what nobody will use again: what killed sidecars and doctors left, and "
     "artifacts\n"
     "of no session; with --older-than also sessions that have been neither attached nor stopped for so long. It may "
     "run\n"
     "beside sidecars: a session with an owner is never touched, nor one with a lease of another program, and one "
     "whose\n"
     "owner died without stopping counts as used when gc finds it. Templates stay. A line each, or with --json:\n\n"
     "  {\"dryRun\": false, \"olderThanSeconds\": 2592000, \"removed\": 1, \"failed\": 0, \"items\": [{\"kind\": "
     "\"session\",\n"
     "   \"name\": \"<id>\", \"outcome\": \"removed\", \"reason\": \"unused\", \"backend\": \"bubblewrap\",\n"
     "   \"lastUse\": \"2026-01-31T12:00:00Z\"}]}\n\n"
     "kind is leftover, orphan, damaged or session; outcome is removed, would-remove, kept or failed; reason is "
     "leftover,\n"
     "orphan, unused, owned, foreign-lease, owner-died, used, no-age or failed. Exit status: 1 when something "
     "failed.\n",
     addGcOptions, readGc},
};

po::options_description optionsOf(const CommandEntry& command) {
  po::options_description options("Options");
  command.addOptions(options);
  addCommonOptions(options);
  return options;
}

std::string helpText(const CommandEntry& command) {
  const bool isDefault = &command == std::begin(kCommands);
  const std::string name(command.name);
  std::ostringstream text;
  text << "Usage: stitchkit-sandbox " << (isDefault ? "[" + name + "]" : name) << " [options]\n\n"
       << command.about << '\n'
       << optionsOf(command);
  for (const CommandEntry& other : kCommands) {
    if (isDefault && &other != &command) {
      text << "\nSee also: stitchkit-sandbox " << other.name << " --help\n";
    }
  }
  return text.str();
}

const CommandEntry& commandNamed(const std::string& name) {
  for (const CommandEntry& command : kCommands) {
    if (command.name == name) {
      return command;
    }
  }
  throw std::invalid_argument("unknown command " + name);
}

// The options of all commands: which command is asked for, and which words are the values of options, is known
// together.
po::options_description allOptions() {
  po::options_description all;
  for (const CommandEntry& command : kCommands) {
    const po::options_description options = optionsOf(command);
    for (const auto& option : options.options()) {
      if (all.find_nothrow(option->long_name(), false) == nullptr) {
        all.add(option);
      }
    }
  }
  all.add_options()("command", po::value<std::string>()->default_value(std::string(kCommands[0].name)));
  return all;
}

struct ReadOptions {
  const CommandEntry& command;
  po::variables_map values;
};

ReadOptions readOptions(int argc, const char* const* argv) {
  const po::options_description all = allOptions();
  po::positional_options_description positional;
  positional.add("command", 1);
  // No abbreviations: an option added later must not change what a script means.
  const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  const po::parsed_options given =
      po::command_line_parser(argc, argv).options(all).positional(positional).style(style).run();
  po::variables_map values;
  po::store(given, values);
  po::notify(values);
  const CommandEntry& command = commandNamed(values["command"].as<std::string>());
  const po::options_description known = optionsOf(command);
  for (const po::option& option : given.options) {
    if (option.string_key != "command" && known.find_nothrow(option.string_key, false) == nullptr) {
      throw std::invalid_argument("--" + option.string_key + " is no option of " + std::string(command.name));
    }
  }
  return {command, std::move(values)};
}

}  // namespace

CommandLineResult parseCommandLine(int argc, const char* const* argv) {
  CommandLineResult result;
  try {
    const auto [command, values] = readOptions(argc, argv);
    if (values["help"].as<bool>()) {
      result.standardOutput = helpText(command);
    } else if (values["version"].as<bool>()) {
      result.standardOutput = "stitchkit-sandbox " STITCHKIT_VERSION "\n";
    } else {
      result.command = command.read(values);
    }
  } catch (const std::exception& fault) {
    result.exitCode = kUsageError;
    result.standardError = std::string("stitchkit-sandbox: ") + fault.what() + "\nTry stitchkit-sandbox --help.\n";
  }
  return result;
}

}  // namespace stitchkit
