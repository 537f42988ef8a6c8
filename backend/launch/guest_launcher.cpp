#include "backend/launch/guest_launcher.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <span>
#include <utility>

#include "rpc/base/unique_fd.h"

// The child runs on this process's memory, or a copy of it, and never returns: what sanitizers put at the start and end
// of a function would count for a function that never ends.
#define CHILD_ONLY __attribute__((no_sanitize("thread", "address", "undefined")))

namespace stitchkit {
namespace {

// Sources at or above this never collide with a target.
constexpr int kFirstSource = 64;
constexpr std::size_t kStackBytes = 64UL * 1024;
constexpr int kSignals = 64;
// ThreadSanitizer takes every clone for a fork, and what it then switches off in the child would be off in this
// process.
#ifdef __SANITIZE_THREAD__
constexpr int kSharedMemory = 0;
#else
constexpr int kSharedMemory = CLONE_VM;
#endif

/// All that the child needs, made before it is.
struct ChildPlan {
  const char* executable;
  char* const* argv;
  char* const* environment;
  std::span<const UniqueFd> sources;
  std::span<const UniqueFd> tasks;
  bool background;
  volatile int failure;  // an errno; the parent reads it when the child is gone or has executed
};

// libc keeps two signals to itself and would leave them as they are.
CHILD_ONLY int resetSignals() {
  struct {
    void* handler;
    unsigned long flags;
    void* restorer;
    std::uint64_t mask;
  } const defaultAction{nullptr, 0, nullptr, 0};
  for (int number = 1; number <= kSignals; ++number) {
    ::syscall(SYS_rt_sigaction, number, &defaultAction, nullptr, sizeof(std::uint64_t));
  }
  const std::uint64_t none = 0;
  return ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none) == 0 ? 0 : errno;
}

// An errno. Nothing here may take a lock or memory: the other threads of the parent are not there.
CHILD_ONLY int becomeProgram(const ChildPlan& plan) {
  for (const UniqueFd& group : plan.tasks) {
    if (::syscall(SYS_write, group.get(), "0", 1) != 1) {
      return errno;
    }
  }
  if (::syscall(SYS_setsid) < 0) {
    return errno;
  }
  if (plan.background) {
    const sched_param parameters{};
    ::syscall(SYS_sched_setscheduler, 0, SCHED_BATCH, &parameters);
  }
  int target = 0;
  for (const UniqueFd& source : plan.sources) {
    if (::syscall(SYS_dup3, source.get(), target, 0) < 0) {
      return errno;
    }
    ++target;
  }
  if (::syscall(SYS_close_range, static_cast<unsigned>(target), ~0U, 0U) != 0) {
    return errno;
  }
  if (const int failure = resetSignals()) {
    return failure;
  }
  ::syscall(SYS_execve, plan.executable, plan.argv, plan.environment);
  return errno;
}

CHILD_ONLY int runChild(void* argument) {
  auto* plan = static_cast<ChildPlan*>(argument);
  plan->failure = becomeProgram(*plan);
  ::syscall(SYS_exit_group, 127);
  return 127;
}

/// Every signal waits until the child has its own dispositions: a handler of ours must not run in it.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &former_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &former_, nullptr); }

 private:
  sigset_t former_{};
};

struct Child {
  pid_t pid = -1;  // < 0: none, and errno says why
  UniqueFd pidfd;
};

/// A stack for the child, and above it a plan that parent and child see, whether or not they share the rest of memory.
class ChildMemory {
 public:
  ChildMemory() : start_(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ChildMemory(const ChildMemory&) = delete;
  ChildMemory& operator=(const ChildMemory&) = delete;
  ~ChildMemory() {
    if (valid()) {
      ::munmap(start_, kBytes);
    }
  }
  [[nodiscard]] bool valid() const { return start_ != MAP_FAILED; }
  [[nodiscard]] void* stackTop() const { return static_cast<char*>(start_) + kStackBytes; }
  ChildPlan& place(const ChildPlan& plan) const { return *new (stackTop()) ChildPlan(plan); }

 private:
  static constexpr std::size_t kBytes = kStackBytes + sizeof(ChildPlan);
  void* start_;
};

// On this process's memory, while this thread waits.
Child cloneHere(ChildPlan& plan, void* stackTop) {
  int pidfd = -1;
  const pid_t pid = ::clone(runChild, stackTop, kSharedMemory | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &plan, &pidfd);
  return {pid, UniqueFd(pid < 0 ? -1 : pidfd)};
}

// Born in a control group of version 2. libc has no way to clone3 on a stack of its own, so that memory is copied.
Child cloneInto(int cgroup, ChildPlan& plan) {
  int pidfd = -1;
  clone_args request{};
  request.flags = CLONE_VFORK | CLONE_PIDFD | CLONE_INTO_CGROUP;
  request.pidfd = reinterpret_cast<std::uintptr_t>(&pidfd);
  request.exit_signal = SIGCHLD;
  request.cgroup = static_cast<std::uint64_t>(cgroup);
  const auto pid = static_cast<pid_t>(::syscall(SYS_clone3, &request, sizeof request));
  if (pid == 0) {
    runChild(&plan);
  }
  return {pid, UniqueFd(pid < 0 ? -1 : pidfd)};
}

// An errno, or 0 and the child.
int start(const ChildPlan& wanted, int cgroup, Child& child) {
  const ChildMemory memory;
  if (!memory.valid()) {
    return errno;
  }
  ChildPlan& plan = memory.place(wanted);
  const SignalsBlocked blocked;
  child = cgroup >= 0 ? cloneInto(cgroup, plan) : cloneHere(plan, memory.stackTop());
  if (child.pid < 0) {
    return errno;
  }
  const int failure = plan.failure;
  if (failure != 0) {
    ::waitpid(child.pid, nullptr, 0);
  }
  return failure;
}

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

// An errno, or 0. The copies live until the child has them.
int copyDescriptors(const std::vector<int>& descriptors, std::vector<UniqueFd>& sources) {
  sources.reserve(descriptors.size());
  for (const int descriptor : descriptors) {
    sources.emplace_back(::fcntl(descriptor, F_DUPFD_CLOEXEC, kFirstSource));
    if (!sources.back()) {
      return errno == EINVAL ? EMFILE : errno;  // EINVAL: the process may have no descriptor as high as that
    }
  }
  return 0;
}

}  // namespace

boost::process::v2::process GuestLauncher::operator()(boost::asio::any_io_executor executor,
                                                      boost::system::error_code& error,
                                                      const boost::filesystem::path& executable,
                                                      const std::vector<std::string>& arguments) const {
  std::vector<UniqueFd> sources;
  const std::vector<char*> argv = argumentVector(name, arguments);
  char* const environment[] = {nullptr};
  Child child;
  int failure = copyDescriptors(descriptors, sources);
  if (failure == 0) {
    failure = start({executable.c_str(), argv.data(), environment, sources, cgroup.tasks,
                     priority == LaunchPriority::kBackground, 0},
                    cgroup.directory, child);
  }
  if (failure != 0) {
    error.assign(failure, boost::system::system_category());
    return boost::process::v2::process(std::move(executor));
  }
  error.clear();
  return boost::process::v2::process(std::move(executor), child.pid, child.pidfd.release());
}

}  // namespace stitchkit
