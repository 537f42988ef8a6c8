#include "tests/support/forked.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <system_error>

#include "rpc/base/unique_fd.h"

namespace stitchkit::testing {
namespace {

std::string outcomeOf(const std::function<std::string()>& work, std::optional<uid_t> user) {
  try {
    if (user) {
      becomeUser(*user);
    }
    return work();
  } catch (const std::exception& failure) {
    return std::string("threw: ") + failure.what();
  }
}

void writeAll(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(to, text.data(), text.size());
    if (written <= 0) {
      return;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

void becomeUser(uid_t user) {
  if (::setgroups(0, nullptr) != 0 || ::setresgid(user, user, user) != 0 || ::setresuid(user, user, user) != 0) {
    throw std::system_error(errno, std::generic_category(), "become another user");
  }
}

ForkedOutcome runForked(const std::function<std::string()>& work, std::optional<uid_t> user) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe2");
  }
  UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    // Catch2's handlers would report the child's end as the test's.
    for (const int signal : {SIGINT, SIGTERM, SIGSEGV, SIGFPE, SIGILL, SIGABRT}) {
      ::signal(signal, SIG_DFL);
    }
    writeAll(writing.get(), outcomeOf(work, user));
    ::_exit(0);
  }
  writing.reset();
  ForkedOutcome outcome;
  std::array<char, 4096> buffer{};
  for (ssize_t size = 0; (size = ::read(reading.get(), buffer.data(), buffer.size())) > 0;) {
    outcome.text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  outcome.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

}  // namespace stitchkit::testing
