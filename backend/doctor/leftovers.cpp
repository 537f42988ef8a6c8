#include "backend/doctor/leftovers.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>
#include <tuple>
#include <utility>

#include "backend/doctor/trial_directory.h"
#include "backend/storage/staging.h"

namespace stitchkit {
namespace {

// A dying process drops its descriptors one by one, the lock of its trial perhaps after the pipe.
constexpr std::chrono::milliseconds kLockInterval{20};
constexpr int kMaxLockWaits = 500;

void stayApart() {
  ::setsid();
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) {
    std::ignore = std::signal(number, SIG_IGN);
  }
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (null < 0 || ::dup2(null, stream) < 0) {
      ::close(stream);
    }
  }
}

void removeTrial(const std::string& stateDirectory) {
  const WorkArea area = WorkArea::support(stateDirectory);
  for (int wait = 0; wait < kMaxLockWaits; ++wait) {
    const Result<Swept> swept = sweepWork(area, TrialDirectory::name());
    if (!swept || *swept == Swept::kRemoved) {
      return;
    }
    std::this_thread::sleep_for(kLockInterval);
  }
}

}  // namespace

void LastAct::prepare(const std::function<void()>& act) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return;
  }
  UniqueFd theirs(ends[0]);
  UniqueFd ours(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    stayApart();
    ours.reset();
    char none = 0;
    while (::read(theirs.get(), &none, 1) < 0 && errno == EINTR) {
    }
    act();
    ::_exit(0);
  }
  if (child > 0) {
    pipe_ = std::move(ours);
    child_ = child;
  }
}

void LastAct::perform() {
  pipe_.reset();
  if (const pid_t child = std::exchange(child_, -1); child > 0) {
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

Leftovers::Leftovers(const std::vector<std::string>& places) {
  for (const std::string& place : places) {
    places_.emplace_back(place);
  }
}

Leftovers::~Leftovers() {
  trials_.perform();
  if (!guard_.prepared()) {
    remove();
  }
}

void Leftovers::guard() {
  guard_.prepare([this] { remove(); });
}

void Leftovers::guardTrials(const std::string& stateDirectory) {
  static_cast<void>(TrialDirectory::name());
  trials_.prepare([this, stateDirectory] {
    removeTrial(stateDirectory);
    if (!guard_.prepared()) {
      remove();
    }
  });
}

void Leftovers::remove() const {
  for (const MadeDirectories& place : places_) {
    place.removeEmpty();
  }
}

}  // namespace stitchkit
