#include "tests/attacks/attempts.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>

namespace stitchkit::testing {

Attempts attemptsOf(const std::string& output) {
  Attempts attempts;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const auto sign = line.find('=');
    if (sign != std::string::npos) {
      attempts[line.substr(0, sign)] = line.substr(sign + 1);
    }
  }
  return attempts;
}

std::set<std::string> succeeded(const Attempts& attempts) {
  std::set<std::string> names;
  for (const auto& [name, outcome] : attempts) {
    if (outcome == "ok") {
      names.insert(name);
    }
  }
  return names;
}

std::ostream& operator<<(std::ostream& out, const Footing& footing) {
  return out << footing.startAs << (footing.allowRoot ? " with --allow-root" : "");
}

std::vector<Footing> footings() {
  std::vector<Footing> all;
  for (const StartAs startAs : startModes()) {
    all.push_back({startAs, false});
  }
  if (::geteuid() == 0) {
    all.push_back({StartAs::kRoot, true});
  }
  return all;
}

SidecarOptions optionsFor(const Footing& footing) {
  SidecarOptions options;
  options.startAs = footing.startAs;
  if (footing.allowRoot) {
    options.arguments.emplace_back("--allow-root");
  }
  return options;
}

std::vector<std::string> weakSandboxCommand() {
  return {"/usr/bin/bwrap", "--unshare-all", "--ro-bind", "/usr",   "/usr",      "--symlink", "usr/lib",
          "/lib",           "--symlink",     "usr/lib64", "/lib64", "--symlink", "usr/bin",   "/bin",
          "--proc",         "/proc",         "--dev",     "/dev",   "--tmpfs",   "/tmp"};
}

ProgramResult weakSandbox(std::vector<std::string> more, std::vector<std::string> program, std::optional<uid_t> user,
                          std::vector<std::string> environment) {
  auto argv = weakSandboxCommand();
  argv.insert(argv.end(), more.begin(), more.end());
  argv.insert(argv.end(), program.begin(), program.end());
  return runProgram(std::move(argv), ::geteuid() == 0 ? user : std::nullopt, std::move(environment));
}

std::optional<uid_t> ordinaryUser() {
  return ::geteuid() == 0 ? std::optional<uid_t>(kOrdinaryUid) : std::nullopt;
}

bool onlyDescendants(const std::vector<pid_t>& known, Milliseconds within) {
  return eventually(
      [&] {
        reapOrphans(known);
        const auto alive = descendantsOf(::getpid());
        return std::all_of(alive.begin(), alive.end(),
                           [&](pid_t pid) { return std::find(known.begin(), known.end(), pid) != known.end(); });
      },
      within);
}

}  // namespace stitchkit::testing
