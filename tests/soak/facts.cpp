#include "tests/soak/facts.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include "tests/support/processes.h"
#include "tests/support/scratch.h"

namespace stitchkit::soak {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOurs = "stitchkit";
// Of tests that run beside this program; it makes a single one itself, for the state directory.
constexpr const char* kOfTests = "stitchkit-test-";

// "socket:[123]", "anon_inode:[eventpoll]", "/memfd:stitchkit (deleted)", "/dev/null".
std::string kindOf(const std::string& target) {
  constexpr std::string_view kAnonymous = "anon_inode:";
  if (target.starts_with(kAnonymous)) {
    return target.substr(kAnonymous.size());
  }
  return target.starts_with("/") ? "file" : target.substr(0, target.find(':'));
}

std::map<std::string, long> descriptorsOf(pid_t pid) {
  std::map<std::string, long> kinds;
  std::error_code failure;
  for (fs::directory_iterator entry("/proc/" + std::to_string(pid) + "/fd", failure), end; !failure && entry != end;
       entry.increment(failure)) {
    std::error_code gone;
    const fs::path target = fs::read_symlink(entry->path(), gone);
    if (!gone) {
      ++kinds[kindOf(target.string())];
    }
  }
  return kinds;
}

long numberOf(const std::string& line) {
  return line.empty() ? 0 : std::stol(line);
}

long sharedOut(pid_t pid) {
  std::ifstream lines("/proc/" + std::to_string(pid) + "/smaps_rollup");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Pss:")) {
      return numberOf(line.substr(4));
    }
  }
  return 0;
}

std::set<std::string> mounts() {
  std::set<std::string> found;
  std::ifstream lines("/proc/self/mountinfo");
  for (std::string line; std::getline(lines, line);) {
    // Number, parent's number, device: those of what was mounted anew are others.
    std::istringstream words(line);
    std::string skipped;
    words >> skipped >> skipped >> skipped;
    std::string rest;
    std::getline(words, rest);
    found.insert(rest);
  }
  return found;
}

std::set<std::string> linesWithOurs(const std::string& file) {
  std::set<std::string> found;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const auto path = line.find_first_of("/@");
    if (path != std::string::npos && line.find(kOurs, path) != std::string::npos) {
      found.insert(line.substr(path));
    }
  }
  return found;
}

std::set<std::string> cgroups() {
  std::set<std::string> found;
  std::error_code failure;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator entry("/sys/fs/cgroup", options, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    std::error_code gone;
    if (entry->is_directory(gone) && entry->path().string().find(kOurs) != std::string::npos) {
      found.insert(entry->path().string());
    }
  }
  return found;
}

std::set<std::string> leftovers() {
  std::set<std::string> found;
  for (const char* folder : {"/tmp", "/var/tmp", "/dev/shm", "/run"}) {
    std::error_code failure;
    for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
      const std::string name = entry->path().filename();
      if (name.find(kOurs) != std::string::npos && !name.starts_with(kOfTests)) {
        found.insert(entry->path().string());
      }
    }
  }
  return found;
}

std::set<std::string> filesBelow(const std::string& folder) {
  std::set<std::string> found;
  std::error_code failure;
  for (fs::recursive_directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    found.insert(entry->path().lexically_relative(folder).string());
    if (entry->path().filename() == "data") {
      entry.disable_recursion_pending();
    }
  }
  return found;
}

std::set<std::string> ourProcesses() {
  std::set<std::string> found;
  for (const pid_t pid : testing::descendantsOf(::getpid())) {
    found.insert(std::to_string(pid) + " " + testing::statusLine(pid, "Name"));
  }
  for (const pid_t pid : testing::wardensOf(::getpid())) {
    found.insert(std::to_string(pid) + " sandbox-warden");
  }
  if (const long zombies = testing::countersOf(::getpid()).zombies; zombies != 0) {
    found.insert(std::to_string(zombies) + " zombies");
  }
  return found;
}

}  // namespace

long SidecarFacts::allDescriptors() const {
  long all = 0;
  for (const auto& [kind, count] : descriptors) {
    all += count;
  }
  return all;
}

SidecarFacts factsOf(pid_t sidecar) {
  const testing::ProcessCounters counters = testing::countersOf(sidecar);
  SidecarFacts facts;
  facts.descriptors = descriptorsOf(sidecar);
  facts.threads = counters.threads;
  facts.children = static_cast<long>(testing::descendantsOf(sidecar).size());
  facts.wardens = static_cast<long>(testing::wardensOf(sidecar).size());
  facts.zombies = counters.zombies;
  facts.residentKib = counters.residentKib;
  facts.sharedOutKib = sharedOut(sidecar);
  facts.anonymousKib = numberOf(testing::statusLine(sidecar, "RssAnon"));
  return facts;
}

MachineFacts machineFacts(const std::string& stateDirectory) {
  return {mounts(),      cgroups(), linesWithOurs("/proc/net/unix"), leftovers(), filesBelow(stateDirectory),
          ourProcesses()};
}

}  // namespace stitchkit::soak
