#include "tests/crash/step_tracer.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <stdexcept>
#include <system_error>

namespace stitchkit::testing {
namespace {

constexpr int kSyscallStop = SIGTRAP | 0x80;
constexpr std::string_view kKilled = "killed before ";

using Arguments = decltype(__ptrace_syscall_info{}.entry.args);

/// What the target's memory and descriptors say.
class Target {
 public:
  Target(pid_t process, std::string root) : process_(process), root_(std::move(root)) {}

  template <class T>
  T read(std::uint64_t address) const {
    T value{};
    iovec here{&value, sizeof value};
    iovec there{reinterpret_cast<void*>(address), sizeof value};
    return ::process_vm_readv(process_, &here, 1, &there, 1, 0) > 0 ? value : T{};
  }

  [[nodiscard]] std::string text(std::uint64_t address) const {
    std::string found;
    // Byte for byte up to the end: the next page may not be there.
    while (found.size() < PATH_MAX) {
      const char one = read<char>(address + found.size());
      if (one == '\0') {
        break;
      }
      found += one;
    }
    return found;
  }

  /// "" for what is no file.
  [[nodiscard]] std::string descriptor(std::uint64_t number) const {
    char name[PATH_MAX] = {};
    const std::string link =
        number == static_cast<std::uint32_t>(AT_FDCWD) || static_cast<int>(number) == AT_FDCWD
            ? "/proc/" + std::to_string(process_) + "/cwd"
            : "/proc/" + std::to_string(process_) + "/fd/" + std::to_string(static_cast<int>(number));
    const ssize_t size = ::readlink(link.c_str(), name, sizeof name);
    struct stat status {};
    std::string path = size > 0 && name[0] == '/' ? std::string(name, static_cast<std::size_t>(size)) : "";
    if (!path.empty() && ::stat(link.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
      path += '/';
    }
    return path;
  }

  /// Of a call with a directory and a name.
  [[nodiscard]] std::string at(std::uint64_t directory, std::uint64_t name) const {
    std::string path = text(name);
    constexpr std::string_view kOwn = "/proc/self/fd/";
    if (path.starts_with(kOwn)) {
      const auto end = path.find('/', kOwn.size());
      const std::string rest = end == std::string::npos ? "" : path.substr(end + 1);
      return descriptor(std::stoul(path.substr(kOwn.size()))) + rest;
    }
    return path.starts_with('/') ? path : descriptor(directory) + path;
  }

  [[nodiscard]] bool isBelow(const std::string& path) const { return path.starts_with(root_ + "/") || path == root_; }

 private:
  pid_t process_;
  std::string root_;
};

std::optional<std::string> onFile(const Target& target, const char* call, std::string path) {
  return target.isBelow(path) ? std::optional(std::string(call) + ' ' + std::move(path)) : std::nullopt;
}

std::optional<std::string> opening(const Target& target, std::uint64_t directory, std::uint64_t name,
                                   std::uint64_t flags) {
  return (flags & (O_CREAT | O_TRUNC)) != 0 || (flags & O_TMPFILE) == O_TMPFILE
             ? onFile(target, "create", target.at(directory, name))
             : std::nullopt;
}

std::optional<std::string> binding(const Target& target, const Arguments& with) {
  const auto address = target.read<sockaddr_un>(with[1]);
  if (address.sun_family != AF_UNIX || address.sun_path[0] != '/') {
    return std::nullopt;
  }
  return onFile(target, "bind", target.at(AT_FDCWD, with[1] + offsetof(sockaddr_un, sun_path)));
}

std::optional<std::string> moving(const Target& target, const std::string& from, const std::string& to) {
  return target.isBelow(from) || target.isBelow(to) ? std::optional("rename " + from + " -> " + to) : std::nullopt;
}

std::optional<std::string> starting(std::uint64_t flags) {
  return (flags & CLONE_THREAD) == 0 ? std::optional<std::string>("start a process") : std::nullopt;
}

/// The step that a system call is.
std::optional<std::string> stepOf(const Target& target, std::uint64_t number, const Arguments& with) {
  switch (number) {
    case SYS_openat:
      return opening(target, with[0], with[1], with[2]);
    case SYS_openat2:
      return opening(target, with[0], with[1], target.read<open_how>(with[2]).flags);
    case SYS_mkdirat:
      return onFile(target, "mkdir", target.at(with[0], with[1]) + '/');
    case SYS_symlinkat:
      return onFile(target, "symlink", target.at(with[1], with[2]));
    case SYS_linkat:
      return onFile(target, "link", target.at(with[2], with[3]));
    case SYS_unlinkat:
      return onFile(target, "unlink", target.at(with[0], with[1]));
    case SYS_renameat2:
#ifdef SYS_renameat
    case SYS_renameat:
#endif
      return moving(target, target.at(with[0], with[1]), target.at(with[2], with[3]));
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
      return onFile(target, "write", target.descriptor(with[0]));
    case SYS_copy_file_range:
      return onFile(target, "write", target.descriptor(with[2]));
    case SYS_sendfile:
      return onFile(target, "write", target.descriptor(with[0]));
    case SYS_ioctl:  // cloning a file's content
      return onFile(target, "ioctl", target.descriptor(with[0]));
    case SYS_ftruncate:
      return onFile(target, "truncate", target.descriptor(with[0]));
    case SYS_fallocate:
      return onFile(target, "allocate", target.descriptor(with[0]));
    case SYS_fchmod:
      return onFile(target, "chmod", target.descriptor(with[0]));
    case SYS_fchmodat:
      return onFile(target, "chmod", target.at(with[0], with[1]));
    case SYS_utimensat:
      return onFile(target, "touch", with[1] == 0 ? target.descriptor(with[0]) : target.at(with[0], with[1]));
    case SYS_flock:
      return onFile(target, "lock", target.descriptor(with[0]));
    case SYS_fsync:
    case SYS_fdatasync:
      return onFile(target, "fsync", target.descriptor(with[0]));
    case SYS_syncfs:
      return onFile(target, "syncfs", target.descriptor(with[0]));
    case SYS_bind:
      return binding(target, with);
    case SYS_clone:
      return starting(with[0]);
    case SYS_clone3:
      return starting(target.read<clone_args>(with[0]).flags);
#ifdef SYS_open
    case SYS_open:
      return opening(target, static_cast<std::uint64_t>(AT_FDCWD), with[0], with[1]);
    case SYS_mkdir:
      return onFile(target, "mkdir", target.at(AT_FDCWD, with[0]) + '/');
    case SYS_rmdir:
    case SYS_unlink:
      return onFile(target, "unlink", target.at(AT_FDCWD, with[0]));
    case SYS_rename:
      return moving(target, target.at(AT_FDCWD, with[0]), target.at(AT_FDCWD, with[1]));
    case SYS_symlink:
      return onFile(target, "symlink", target.at(AT_FDCWD, with[1]));
    case SYS_link:
      return onFile(target, "link", target.at(AT_FDCWD, with[1]));
    case SYS_chmod:
      return onFile(target, "chmod", target.at(AT_FDCWD, with[0]));
    case SYS_fork:
    case SYS_vfork:
      return "start a process";
#endif
    case SYS_sendmsg:
      return "send a message";
    default:
      return std::nullopt;
  }
}

/// In the process beside the test.
class Tracing {
 public:
  Tracing(pid_t process, const std::string& root, unsigned killBefore, int log)
      : process_(process), target_(process, root), killBefore_(killBefore), log_(log) {}

  /// Follows each thread that there is; whoever begins one meanwhile is followed already. 0 or errno.
  int begin() {
    const std::string tasks = "/proc/" + std::to_string(process_) + "/task";
    for (bool found = true; found;) {
      found = false;
      for (const auto& entry : std::filesystem::directory_iterator(tasks)) {
        const pid_t thread = std::stoi(entry.path().filename());
        if (!threads_.insert(thread).second) {
          continue;
        }
        found = true;
        constexpr auto kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE;
        if (::ptrace(PTRACE_SEIZE, thread, nullptr, kOptions) == 0) {
          ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
        } else if (errno != ESRCH && errno != EPERM) {
          return errno;
        } else if (thread == process_) {
          return errno;
        }
      }
    }
    return 0;
  }

  /// Until none of its threads is left.
  void run() {
    int status = 0;
    for (pid_t thread = 0; (thread = ::waitpid(-1, &status, __WALL)) > 0 || errno == EINTR;) {
      if (thread > 0 && WIFSTOPPED(status)) {
        onStop(thread, WSTOPSIG(status), status >> 16);
      }
    }
  }

 private:
  void onStop(pid_t thread, int signal, int event) {
    if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) {
      ::ptrace(PTRACE_LISTEN, thread, nullptr, nullptr);  // stopped by a signal, and stays so
      return;
    }
    if (signal == kSyscallStop && !onSystemCall(thread)) {
      return;
    }
    const bool delivered = event == 0 && signal != kSyscallStop;
    ::ptrace(PTRACE_SYSCALL, thread, nullptr, delivered ? signal : 0);
  }

  /// False when the target was killed.
  bool onSystemCall(pid_t thread) {
    __ptrace_syscall_info info{};
    if (::ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0 || info.op != PTRACE_SYSCALL_INFO_ENTRY) {
      return true;
    }
    const auto step = stepOf(target_, info.entry.nr, info.entry.args);
    if (!step || (killBefore_ != 0 && steps_ >= killBefore_)) {
      return true;
    }
    const bool kill = ++steps_ == killBefore_;
    const std::string line = (kill ? std::string(kKilled) : "") + *step + '\n';
    static_cast<void>(!::write(log_, line.data(), line.size()));
    if (kill) {
      ::kill(process_, SIGKILL);
    }
    return !kill;
  }

  pid_t process_;
  Target target_;
  unsigned killBefore_;
  int log_;
  unsigned steps_ = 0;
  std::set<pid_t> threads_;
};

}  // namespace

StepTracer::StepTracer(pid_t target, std::string root, unsigned killBefore)
    : log_(::memfd_create("steps", MFD_CLOEXEC)) {
  int ends[2] = {-1, -1};
  if (!log_ || ::pipe2(ends, O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "start a tracer");
  }
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  tracer_ = ::fork();
  if (tracer_ == 0) {
    Tracing tracing(target, root, killBefore, log_.get());
    const int error = tracing.begin();
    static_cast<void>(!::write(writing.get(), &error, sizeof error));
    if (error == 0) {
      tracing.run();
    }
    ::_exit(0);
  }
  writing.reset();
  int error = -1;
  if (tracer_ < 0 || ::read(reading.get(), &error, sizeof error) != sizeof error || error != 0) {
    finish();
    throw std::system_error(error, std::generic_category(), "trace the sidecar");
  }
}

StepTracer::~StepTracer() {
  finish();
}

std::vector<std::string> StepTracer::finish() {
  if (tracer_ > 0) {
    // What it follows goes on by itself when it is gone.
    ::kill(tracer_, SIGKILL);
    ::waitpid(tracer_, nullptr, 0);
    tracer_ = -1;
  }
  std::string text(static_cast<std::size_t>(std::max<off_t>(::lseek(log_.get(), 0, SEEK_END), 0)), '\0');
  if (::pread(log_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    throw std::runtime_error("the tracer's log cannot be read");
  }
  std::vector<std::string> steps;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    steps.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (!steps.empty() && steps.back().starts_with(kKilled)) {
    killed_ = true;
    steps.back().erase(0, kKilled.size());
  }
  return steps;
}

}  // namespace stitchkit::testing
