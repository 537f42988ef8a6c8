#include "tests/support/spawn.h"

#include "tests/support/processes.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace stitchkit::testing {
namespace {

constexpr int kAboveAllTargets = 64;

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> made;
  made.reserve(texts.size() + 1);
  for (const auto& text : texts) {
    made.push_back(const_cast<char*>(text.c_str()));
  }
  made.push_back(nullptr);
  return made;
}

// In the child: nothing here may allocate or take a lock.
bool becomePlain(const SpawnOptions& options) {
  for (int signal = 1; signal < NSIG; ++signal) {
    ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (options.controllingTerminal && (::setsid() < 0 || ::ioctl(0, TIOCSCTTY, 0) != 0)) {
    return false;
  }
  if (options.user && ::geteuid() == 0) {
    const uid_t user = *options.user;
    return ::setgroups(0, nullptr) == 0 && ::setresgid(user, user, user) == 0 && ::setresuid(user, user, user) == 0;
  }
  return true;
}

// `sources` are copies out of the way of the targets; `report` moves out of the way, too.
bool placeDescriptors(const SpawnOptions& options, const std::vector<UniqueFd>& sources, int& report) {
  report = ::fcntl(report, F_DUPFD_CLOEXEC, kAboveAllTargets);
  std::array<bool, kAboveAllTargets> kept{};
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const int target = options.descriptors[i].second;
    if (::dup2(sources[i].get(), target) != target) {
      return false;
    }
    kept[static_cast<std::size_t>(target)] = true;
  }
  for (int number = 0; number < kAboveAllTargets; ++number) {
    if (!kept[static_cast<std::size_t>(number)]) {
      ::close(number);
    }
  }
  constexpr unsigned kCloseOnExec = 4;  // CLOSE_RANGE_CLOEXEC
  return ::syscall(SYS_close_range, kAboveAllTargets, ~0U, kCloseOnExec) == 0;
}

[[noreturn]] void runChild(const SpawnOptions& options, const std::vector<UniqueFd>& sources, char** argv, char** envp,
                           int report) {
  if (placeDescriptors(options, sources, report) && becomePlain(options) &&
      ::chdir(options.workingDirectory.c_str()) == 0) {
    ::execve(argv[0], argv, envp);
  }
  const int failure = errno;
  [[maybe_unused]] const ssize_t told = ::write(report, &failure, sizeof failure);
  ::_exit(127);
}

}  // namespace

pid_t spawnProgram(const SpawnOptions& options) {
  std::vector<UniqueFd> sources;
  for (const auto& [source, target] : options.descriptors) {
    sources.emplace_back(::fcntl(source, F_DUPFD_CLOEXEC, kAboveAllTargets));
    if (!sources.back() || target >= kAboveAllTargets) {
      throw std::system_error(EBADF, std::generic_category(), "descriptor for a child");
    }
  }
  const auto argv = pointers(options.argv);
  const auto envp = pointers(options.environment);
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe2");
  }
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    runChild(options, sources, const_cast<char**>(argv.data()), const_cast<char**>(envp.data()), writing.get());
  }
  writing.reset();
  int failure = 0;
  if (child < 0 || ::read(reading.get(), &failure, sizeof failure) > 0) {
    ::waitpid(child, nullptr, 0);
    throw std::system_error(failure, std::generic_category(), "exec " + options.argv.front());
  }
  return child;
}

std::optional<ExitStatus> waitForChild(pid_t child, std::chrono::milliseconds within) {
  int status = 0;
  const bool ended = eventually([&] { return ::waitpid(child, &status, WNOHANG) != 0; }, within);
  if (!ended) {
    return std::nullopt;
  }
  return WIFEXITED(status) ? ExitStatus{WEXITSTATUS(status), 0} : ExitStatus{-1, WTERMSIG(status)};
}

ProgramResult runProgram(std::vector<std::string> argv, std::optional<uid_t> user,
                         std::vector<std::string> environment) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe2");
  }
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  SpawnOptions options;
  options.argv = std::move(argv);
  options.environment = std::move(environment);
  options.descriptors = {{null.get(), 0}, {writing.get(), 1}, {writing.get(), 2}};
  options.user = user;
  const pid_t child = spawnProgram(options);
  writing.reset();
  ProgramResult result;
  std::array<char, 4096> buffer{};
  for (ssize_t size = 0; (size = ::read(reading.get(), buffer.data(), buffer.size())) > 0;) {
    result.output.append(buffer.data(), static_cast<std::size_t>(size));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  result.status = WIFEXITED(status) ? ExitStatus{WEXITSTATUS(status), 0} : ExitStatus{-1, WTERMSIG(status)};
  return result;
}

}  // namespace stitchkit::testing
