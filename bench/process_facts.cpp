#include "bench/process_facts.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

namespace stitchkit::bench {

namespace fs = std::filesystem;

namespace {

int countEntries(const fs::path& directory) {
  return static_cast<int>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

/// A line of `status` such as "VmRSS:", which is in KiB.
std::int64_t bytesIn(const fs::path& process, std::string_view name) {
  std::ifstream status(process / "status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) {
      return std::stoll(line.substr(name.size())) * 1024;
    }
  }
  return 0;
}

// /proc/PID/stat is "pid (name) state ppid ...", and the name may hold anything.
bool isZombieOf(const fs::path& process, pid_t parent) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text);
  const std::size_t nameEnd = text.rfind(')');
  if (nameEnd == std::string::npos) {
    return false;
  }
  std::istringstream fields(text.substr(nameEnd + 1));
  char state = 0;
  pid_t ppid = 0;
  fields >> state >> ppid;
  return state == 'Z' && ppid == parent;
}

int countZombies(pid_t parent) {
  int zombies = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    const bool process = std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    zombies += process && isZombieOf(entry.path(), parent) ? 1 : 0;
  }
  return zombies;
}

}  // namespace

ProcessFacts factsOf(pid_t pid) {
  const fs::path process = fs::path("/proc") / std::to_string(pid);
  return {countEntries(process / "fd"), countEntries(process / "task"), countZombies(pid), bytesIn(process, "VmRSS:"),
          bytesIn(process, "VmHWM:")};
}

void forgetPeak(pid_t pid) {
  std::ofstream(fs::path("/proc") / std::to_string(pid) / "clear_refs") << "5";
}

}  // namespace stitchkit::bench
