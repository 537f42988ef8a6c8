#include "backend/launch/guest_launcher.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "rpc/base/unique_fd.h"

namespace stitchkit {
namespace {

// Sources at or above this never collide with a target.
constexpr int kFirstSource = 64;

class SpawnSettings {
 public:
  SpawnSettings() noexcept {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  /// An errno, or 0.
  int setUp(LaunchPriority priority) noexcept {
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    int flags = POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (priority == LaunchPriority::kBackground) {
      const sched_param parameters{};
      ::posix_spawnattr_setschedpolicy(&attributes_, SCHED_BATCH);
      ::posix_spawnattr_setschedparam(&attributes_, &parameters);
      flags |= POSIX_SPAWN_SETSCHEDULER;
    }
    return ::posix_spawnattr_setflags(&attributes_, static_cast<short>(flags));
  }

  /// An errno, or 0. The copies live in `sources` until the spawn is done.
  int mapDescriptors(const std::vector<int>& descriptors, std::vector<UniqueFd>& sources) {
    sources.reserve(descriptors.size());
    int target = 0;
    for (const int descriptor : descriptors) {
      sources.emplace_back(::fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstSource));
      if (!sources.back()) {
        return errno == EINVAL ? EMFILE : errno;  // EINVAL: the process may have no descriptor as high as that
      }
      if (const int failure = ::posix_spawn_file_actions_adddup2(&actions_, sources.back().get(), target++)) {
        return failure;
      }
    }
    return ::posix_spawn_file_actions_addclosefrom_np(&actions_, target);
  }

  int spawn(pid_t& pid, const char* executable, char* const* argv) noexcept {
    char* const environment[] = {nullptr};
    return ::posix_spawn(&pid, executable, &actions_, &attributes_, argv, environment);
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

std::vector<char*> argumentVector(const std::string& name, const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 2);
  argv.push_back(const_cast<char*>(name.c_str()));
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  return argv;
}

}  // namespace

boost::process::v2::process GuestLauncher::operator()(boost::asio::any_io_executor executor,
                                                      boost::system::error_code& error,
                                                      const boost::filesystem::path& executable,
                                                      const std::vector<std::string>& arguments) const {
  SpawnSettings settings;
  std::vector<UniqueFd> sources;
  const std::vector<char*> argv = argumentVector(name, arguments);
  pid_t pid = -1;
  int failure = settings.setUp(priority);
  if (failure == 0) {
    failure = settings.mapDescriptors(descriptors, sources);
  }
  if (failure == 0) {
    failure = settings.spawn(pid, executable.c_str(), argv.data());
  }
  if (failure != 0) {
    error.assign(failure, boost::system::system_category());
    return boost::process::v2::process(std::move(executor));
  }
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) {
    error.assign(errno, boost::system::system_category());
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return boost::process::v2::process(std::move(executor));
  }
  error.clear();
  return boost::process::v2::process(std::move(executor), pid, pidfd);
}

}  // namespace stitchkit
