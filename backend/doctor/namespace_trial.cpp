#include "backend/doctor/namespace_trial.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <string>

#include "rpc/base/unique_fd.h"

namespace stitchkit {
namespace {

enum Step : int { kNone, kUserNamespace, kMap, kOthers };
constexpr const char* kNames[] = {"", "user namespace", "uid map", "namespaces"};

struct Outcome {
  int step;
  int error;
};

bool writeWhole(const char* path, const std::string& text) {
  const UniqueFd file(::open(path, O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

Outcome attempt() {
  // A process that has given up root may not write its own maps, unless it is dumpable.
  ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  const std::string map = "1000 " + std::to_string(::geteuid()) + " 1";
  if (::unshare(CLONE_NEWUSER) != 0) {
    return {kUserNamespace, errno};
  }
  if (!writeWhole("/proc/self/uid_map", map)) {
    return {kMap, errno};
  }
  constexpr int kOtherKinds = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWNET;
  return ::unshare(kOtherKinds) == 0 ? Outcome{kNone, 0} : Outcome{kOthers, errno};
}

}  // namespace

NamespaceTrial tryNamespaces() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return {kNames[kUserNamespace], errno};
  }
  const UniqueFd read(ends[0]);
  UniqueFd write(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) {
    return {kNames[kUserNamespace], errno};
  }
  if (child == 0) {
    const Outcome outcome = attempt();
    ::_exit(::write(write.get(), &outcome, sizeof outcome) == sizeof outcome ? 0 : 1);
  }
  write.reset();
  Outcome outcome{kUserNamespace, EPERM};  // of a child that was killed for asking
  while (::read(read.get(), &outcome, sizeof outcome) < 0 && errno == EINTR) {
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {kNames[outcome.step], outcome.error};
}

}  // namespace stitchkit
