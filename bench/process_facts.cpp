#include "bench/process_facts.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace stitchkit::bench {

namespace fs = std::filesystem;

namespace {

int countEntries(const fs::path& directory) {
  return static_cast<int>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

fs::path directoryOf(pid_t pid) {
  return fs::path("/proc") / std::to_string(pid);
}

std::optional<std::int64_t> numberIn(const fs::path& file, std::string_view name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name)) {
      return std::stoll(line.substr(name.size()));
    }
  }
  return std::nullopt;
}

/// A line of `status` such as "VmRSS:", which is in KiB.
std::int64_t bytesIn(const fs::path& process, std::string_view name) {
  return numberIn(process / "status", name).value_or(0) * 1024;
}

// /proc/PID/stat is "pid (name) state ppid ...", and the name may hold anything.
struct Relation {
  pid_t pid = 0;
  pid_t parent = 0;
  bool zombie = false;
};

Relation relationOf(pid_t pid) {
  std::ifstream file(directoryOf(pid) / "stat");
  std::string text;
  std::getline(file, text);
  const std::size_t nameEnd = text.rfind(')');
  if (nameEnd == std::string::npos) {
    return {};
  }
  std::istringstream fields(text.substr(nameEnd + 1));
  char state = 0;
  pid_t parent = 0;
  fields >> state >> parent;
  return {pid, parent, state == 'Z'};
}

std::vector<Relation> allProcesses() {
  std::vector<Relation> all;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      all.push_back(relationOf(static_cast<pid_t>(std::stol(name))));
    }
  }
  return all;
}

int countZombies(pid_t parent) {
  const std::vector<Relation> all = allProcesses();
  return static_cast<int>(
      std::count_if(all.begin(), all.end(), [&](const Relation& one) { return one.zombie && one.parent == parent; }));
}

}  // namespace

ProcessFacts factsOf(pid_t pid) {
  const fs::path process = directoryOf(pid);
  return {countEntries(process / "fd"), countEntries(process / "task"), countZombies(pid), bytesIn(process, "VmRSS:"),
          bytesIn(process, "VmHWM:")};
}

void forgetPeak(pid_t pid) {
  std::ofstream(directoryOf(pid) / "clear_refs") << "5";
}

std::vector<pid_t> descendantsOf(pid_t pid) {
  const std::vector<Relation> all = allProcesses();
  std::vector<pid_t> family{pid};
  for (std::size_t i = 0; i < family.size(); ++i) {
    for (const Relation& one : all) {
      if (one.parent == family[i] && !one.zombie) {
        family.push_back(one.pid);
      }
    }
  }
  family.erase(family.begin());
  return family;
}

std::string nameOf(pid_t pid) {
  std::string name;
  std::getline(std::ifstream(directoryOf(pid) / "comm"), name);
  return name;
}

std::int64_t proportionalBytes(pid_t pid) {
  const auto kibibytes = numberIn(directoryOf(pid) / "smaps_rollup", "Pss:");
  if (!kibibytes) {
    throw std::runtime_error("the memory of a waiting launch cannot be read");
  }
  return *kibibytes * 1024;
}

std::int64_t sleepsOf(pid_t pid) {
  std::int64_t sleeps = 0;
  for (const fs::directory_entry& thread : fs::directory_iterator(directoryOf(pid) / "task")) {
    sleeps += numberIn(thread.path() / "status", "voluntary_ctxt_switches:").value_or(0);
  }
  return sleeps;
}

}  // namespace stitchkit::bench
