#include "backend/doctor/bubblewrap_facts.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string_view>
#include <system_error>

#include "rpc/base/unique_fd.h"

namespace stitchkit {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{5};
constexpr std::size_t kAnswerBytes = 4096;

// `output` becomes its standard output and error. In a session of its own, so that all of it can be ended.
pid_t startVersion(const std::string& path, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::string name = "bwrap";
  std::string option = "--version";
  char* const arguments[] = {name.data(), option.data(), nullptr};
  char* const environment[] = {nullptr};
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, path.c_str(), &actions, &attributes, arguments, environment);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  return failed == 0 ? pid : -1;
}

std::string readUntil(int descriptor, Clock::time_point deadline) {
  std::string text;
  char part[512];
  while (text.size() < kAnswerBytes && text.find('\n') == std::string::npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waiter{descriptor, POLLIN, 0};
    if (left <= 0 || ::poll(&waiter, 1, static_cast<int>(left)) <= 0) {
      break;
    }
    const ssize_t size = ::read(descriptor, part, sizeof part);
    if (size <= 0) {
      break;
    }
    text.append(part, static_cast<std::size_t>(size));
  }
  return text.substr(0, text.find('\n'));
}

std::string askVersion(const std::string& path) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return "";
  }
  const UniqueFd read(ends[0]);
  UniqueFd write(ends[1]);
  const pid_t child = startVersion(path, write.get());
  write.reset();
  if (child < 0) {
    return "";
  }
  std::string answer = readUntil(read.get(), Clock::now() + kPatience);
  ::kill(-child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return answer;
}

}  // namespace

BubblewrapFacts readBubblewrapFacts(const std::string& path, bool run) {
  BubblewrapFacts facts;
  facts.path = path;
  facts.file = lookAtProgram(path);
  if (run && facts.file.error == 0) {
    facts.asked = true;
    facts.answer = askVersion(path);
    facts.version = parseBubblewrapVersion(facts.answer);
  }
  return facts;
}

}  // namespace stitchkit
