#include "backend/launch/command_payload.h"

#include <unordered_map>

namespace stitchkit {
namespace {

template <class Header>
void appendHeader(std::string& payload, const Header& header) {
  payload.append(reinterpret_cast<const char*>(&header), sizeof header);
}

void appendString(std::string& payload, std::string_view text) {
  payload.append(text);
  payload.push_back('\0');
}

}  // namespace

std::vector<std::string> guestEnvironment(const Command& command) {
  std::vector<std::string> entries{"PATH=/usr/bin:/bin", "HOME=/workspace"};
  std::unordered_map<std::string_view, std::size_t> places{{"PATH", 0}, {"HOME", 1}};
  for (const auto& [name, value] : command.environment) {
    const auto [place, isNew] = places.emplace(name, entries.size());
    std::string entry = name + "=" + value;
    if (isNew) {
      entries.push_back(std::move(entry));
    } else {
      entries[place->second] = std::move(entry);
    }
  }
  if (!places.contains("PWD")) {
    entries.push_back("PWD=" + command.workingDirectory);
  }
  return entries;
}

std::string commandPayload(const Command& command, std::uint64_t softOpenFiles, bool entersGroup) {
  const std::vector<std::string> environment = guestEnvironment(command);
  LaunchRunHeader header{};
  header.argumentCount = static_cast<std::uint32_t>(command.arguments.size() + 1);
  header.environmentCount = static_cast<std::uint32_t>(environment.size());
  header.entersGroup = entersGroup ? 1 : 0;
  header.fileBytes = command.maxFileBytes.value_or(LAUNCH_KEEP_LIMIT);
  header.openFiles = command.maxOpenFiles.value_or(LAUNCH_KEEP_LIMIT);
  // The sandbox's init counts as well.
  header.processes = command.maxProcesses ? *command.maxProcesses + 1 : LAUNCH_KEEP_LIMIT;
  header.softOpenFiles = softOpenFiles != 0 ? softOpenFiles : LAUNCH_KEEP_LIMIT;
  std::string payload;
  appendHeader(payload, header);
  appendString(payload, command.workingDirectory);
  appendString(payload, command.executable);
  appendString(payload, command.executable);  // argv[0]
  for (const std::string& argument : command.arguments) {
    appendString(payload, argument);
  }
  for (const std::string& entry : environment) {
    appendString(payload, entry);
  }
  return payload;
}

std::string pathPayload(const LaunchPathHeader& header, std::string_view path) {
  std::string payload;
  appendHeader(payload, header);
  appendString(payload, path);
  return payload;
}

}  // namespace stitchkit
