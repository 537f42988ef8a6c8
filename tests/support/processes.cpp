#include "tests/support/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "rpc/base/unique_fd.h"

namespace stitchkit::testing {
namespace {

constexpr Milliseconds kPause(2);
constexpr std::string_view kLaunchHelper = "/run/stitchkit-launch";

struct Relation {
  pid_t parent = 0;
  char state = '?';
};

struct CloseDirectory {
  void operator()(DIR* stream) const noexcept { ::closedir(stream); }
};

std::vector<std::string> namesIn(const std::string& folder) {
  const std::unique_ptr<DIR, CloseDirectory> stream(::opendir(folder.c_str()));
  std::vector<std::string> names;
  while (const dirent* entry = stream ? ::readdir(stream.get()) : nullptr) {
    if (entry->d_name[0] != '.') {
      names.emplace_back(entry->d_name);
    }
  }
  return names;
}

std::vector<pid_t> allProcesses() {
  std::vector<pid_t> pids;
  for (const auto& name : namesIn("/proc")) {
    if (std::isdigit(static_cast<unsigned char>(name.front())) != 0) {
      pids.push_back(std::stoi(name));
    }
  }
  return pids;
}

// What could be read of it: the process may end meanwhile.
std::string procFile(pid_t pid, const char* name) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + name;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char part[4096];
  for (ssize_t size = 0; (size = ::read(file.get(), part, sizeof part)) > 0;) {
    text.append(part, static_cast<std::size_t>(size));
  }
  return text;
}

// Empty when the process is gone.
std::optional<Relation> relationOf(pid_t pid) {
  const std::string stat = procFile(pid, "stat");
  const auto end = stat.rfind(')');  // the name may hold anything
  if (end == std::string::npos || end + 4 >= stat.size()) {
    return std::nullopt;
  }
  return Relation{std::stoi(stat.substr(end + 4)), stat[end + 2]};
}

bool isDead(char state) {
  return state == 'Z' || state == 'X';
}

}  // namespace

std::string statusLine(pid_t pid, std::string_view name) {
  const std::string status = procFile(pid, "status");
  const std::string key = std::string(name) + ":";
  for (std::size_t at = 0; at < status.size();) {
    const auto end = std::min(status.find('\n', at), status.size());
    const auto line = std::string_view(status).substr(at, end - at);
    if (line.starts_with(key)) {
      const auto value = line.find_first_not_of(" \t", key.size());
      return value == std::string_view::npos ? "" : std::string(line.substr(value));
    }
    at = end + 1;
  }
  return "";
}

namespace {

long statusNumber(pid_t pid, std::string_view name) {
  const std::string value = statusLine(pid, name);
  return value.empty() ? 0 : std::stol(value);
}

}  // namespace

bool isSanitized(pid_t pid) {
  return statusNumber(pid, "VmSize") > 1024L * 1024 * 1024;
}

ProcessCounters countersOf(pid_t pid) {
  ProcessCounters counters;
  counters.residentKib = statusNumber(pid, "VmRSS");
  counters.peakKib = statusNumber(pid, "VmHWM");
  counters.threads = statusNumber(pid, "Threads");
  counters.descriptors = static_cast<long>(namesIn("/proc/" + std::to_string(pid) + "/fd").size());
  for (const pid_t other : allProcesses()) {
    const auto relation = relationOf(other);
    counters.zombies += relation && relation->parent == pid && relation->state == 'Z' ? 1 : 0;
  }
  return counters;
}

std::vector<pid_t> guestsAlive(std::string_view marker) {
  std::vector<pid_t> found;
  for (const pid_t pid : allProcesses()) {
    if (pid != ::getpid() && procFile(pid, "cmdline").find(marker) != std::string::npos) {
      found.push_back(pid);
    }
  }
  return found;
}

namespace {

using Relations = std::map<pid_t, Relation>;

Relations allRelations() {
  Relations relations;
  for (const pid_t pid : allProcesses()) {
    if (const auto relation = relationOf(pid)) {
      relations[pid] = *relation;
    }
  }
  return relations;
}

std::vector<pid_t> livingBelow(pid_t ancestor, const Relations& relations) {
  std::vector<pid_t> found;
  for (const auto& [pid, relation] : relations) {
    pid_t above = relation.parent;
    for (auto next = relations.find(above); above != ancestor && next != relations.end();) {
      above = next->second.parent;
      next = relations.find(above);
    }
    if (above == ancestor && !isDead(relation.state) && procFile(pid, "comm") != "sandbox-warden\n") {
      found.push_back(pid);
    }
  }
  return found;
}

pid_t parentIn(const Relations& relations, pid_t pid) {
  const auto found = relations.find(pid);
  return found == relations.end() ? 0 : found->second.parent;
}

// A command may give itself any name and any command line, but no other executable: that is asked where it may be.
bool isLaunchHelper(pid_t pid) {
  if (!procFile(pid, "cmdline").starts_with(std::string(kLaunchHelper) + '\0') ||
      procFile(pid, "comm") != "stitchkit-launc\n") {
    return false;
  }
  char target[4096];
  const ssize_t size = ::readlink(("/proc/" + std::to_string(pid) + "/exe").c_str(), target, sizeof target);
  return size < 0 ? errno == EACCES || errno == EPERM
                  : std::string_view(target, static_cast<std::size_t>(size)) == kLaunchHelper;
}

std::vector<WaitingLaunch> waitingIn(pid_t sidecar, const std::vector<pid_t>& below, const Relations& relations) {
  std::vector<WaitingLaunch> found;
  for (const pid_t pid : below) {
    const pid_t init = parentIn(relations, pid);
    const pid_t bubblewrap = parentIn(relations, init);
    if (relations.at(pid).state == 'S' && parentIn(relations, bubblewrap) == sidecar && isLaunchHelper(pid)) {
      found.push_back({bubblewrap, init, pid});
    }
  }
  return found;
}

}  // namespace

std::vector<pid_t> descendantsOf(pid_t ancestor) {
  return livingBelow(ancestor, allRelations());
}

std::vector<WaitingLaunch> waitingLaunchesOf(pid_t sidecar) {
  const Relations relations = allRelations();
  return waitingIn(sidecar, livingBelow(sidecar, relations), relations);
}

std::vector<pid_t> commandsOf(pid_t sidecar) {
  const Relations relations = allRelations();
  std::vector<pid_t> left = livingBelow(sidecar, relations);
  for (const WaitingLaunch& launch : waitingIn(sidecar, left, relations)) {
    for (const pid_t pid : launch.processes()) {
      left.erase(std::remove(left.begin(), left.end(), pid), left.end());
    }
  }
  return left;
}

std::vector<pid_t> wardensOf(pid_t sidecar) {
  std::vector<pid_t> found;
  for (const pid_t pid : allProcesses()) {
    const auto relation = relationOf(pid);
    if (relation && relation->parent == sidecar && !isDead(relation->state) &&
        procFile(pid, "comm") == "sandbox-warden\n") {
      found.push_back(pid);
    }
  }
  return found;
}

void becomeSubreaper() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void reapOrphans(const std::vector<pid_t>& known) {
  for (const pid_t pid : allProcesses()) {
    const auto relation = relationOf(pid);
    const bool ours = relation && relation->parent == ::getpid() && relation->state == 'Z';
    if (ours && std::find(known.begin(), known.end(), pid) == known.end()) {
      ::waitpid(pid, nullptr, WNOHANG);
    }
  }
}

bool eventually(const std::function<bool()>& condition, Milliseconds within) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return condition();
    }
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

bool killAll(std::string_view marker) {
  return eventually([marker] {
    const auto alive = guestsAlive(marker);
    for (const pid_t pid : alive) {
      ::kill(pid, SIGKILL);
    }
    return alive.empty();
  });
}

bool noGuestSoon(std::string_view marker, Milliseconds within) {
  return eventually([marker] { return guestsAlive(marker).empty(); }, within);
}

}  // namespace stitchkit::testing
