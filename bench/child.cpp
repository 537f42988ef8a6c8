#include "bench/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace stitchkit::bench {

namespace {

// The descriptors given must not stand below 3: dup2 to 0, 1 and 2 would overwrite one that is still to be read.
void addStream(posix_spawn_file_actions_t* actions, int target, int fd) {
  if (fd < 0) {
    posix_spawn_file_actions_addopen(actions, target, "/dev/null", O_RDWR, 0);
  } else {
    posix_spawn_file_actions_adddup2(actions, fd, target);
  }
}

}  // namespace

Child::Child(const std::vector<std::string>& argv, int stdinFd, int stdoutFd, int stderrFd) {
  std::vector<char*> arguments;
  arguments.reserve(argv.size() + 1);
  for (const std::string& argument : argv) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  char path[] = "PATH=/usr/bin:/bin";
  char* environment[] = {path, nullptr};

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  addStream(&actions, 0, stdinFd);
  addStream(&actions, 1, stdoutFd);
  addStream(&actions, 2, stderrFd);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;  // we ignore SIGPIPE, and that would be inherited
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int failure = posix_spawn(&pid_, argv.front().c_str(), &actions, &attributes, arguments.data(), environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    throw std::system_error(failure, std::generic_category(), "start of " + argv.front());
  }
}

Child::~Child() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    wait();
  }
}

int Child::wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "waitpid");
    }
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace stitchkit::bench
