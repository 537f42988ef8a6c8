#include "backend/doctor/limit_facts.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "rpc/base/limits.h"
#include "rpc/base/unique_fd.h"

namespace stitchkit {
namespace {

// Eight workers, the warden, and bwrap, its init and the helper; beside them up to four threads of the gateway.
constexpr std::size_t kProcessesOfLaunch = 8 + 1 + 3;
constexpr unsigned kGatewayThreads = 4;

LimitFacts limited(Cause cause, std::size_t had, std::size_t needed) {
  return {cause, std::to_string(had) + " further ones of the " + std::to_string(needed) + " that a launch needs"};
}

}  // namespace

LimitFacts tryOpenFiles() {
  std::vector<UniqueFd> files;
  while (files.size() < limits::kLeastOpenFiles) {
    UniqueFd file(::open("/", O_PATH | O_CLOEXEC));
    if (!file) {
      return limited(Cause::kOpenFilesLimited, files.size(), limits::kLeastOpenFiles);
    }
    files.push_back(std::move(file));
  }
  return {};
}

LimitFacts tryProcesses() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return {Cause::kOpenFilesLimited, errnoName(errno)};
  }
  UniqueFd theirs(ends[0]);
  UniqueFd ours(ends[1]);
  const std::size_t needed = kProcessesOfLaunch + std::clamp(std::thread::hardware_concurrency(), 1U, kGatewayThreads);
  std::vector<pid_t> children;
  while (children.size() < needed) {
    const pid_t child = ::fork();
    if (child < 0) {
      break;
    }
    if (child == 0) {
      ours.reset();
      char none = 0;
      while (::read(theirs.get(), &none, 1) < 0 && errno == EINTR) {
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  ours.reset();
  for (const pid_t child : children) {
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  return children.size() == needed ? LimitFacts() : limited(Cause::kProcessesLimited, children.size(), needed);
}

}  // namespace stitchkit
