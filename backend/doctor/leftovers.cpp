#include "backend/doctor/leftovers.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace stitchkit {

Leftovers::Leftovers(const std::vector<std::string>& places) {
  for (const std::string& place : places) {
    places_.emplace_back(place);
  }
}

Leftovers::~Leftovers() {
  if (child_ < 0) {
    remove();
    return;
  }
  pipe_.reset();
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Leftovers::guard() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return;
  }
  UniqueFd theirs(ends[0]);
  UniqueFd ours(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      ::close(stream);
    }
    ::setsid();  // an interrupt from the terminal is not for it
    ours.reset();
    char none = 0;
    while (::read(theirs.get(), &none, 1) < 0 && errno == EINTR) {
    }
    remove();
    ::_exit(0);
  }
  if (child > 0) {
    pipe_ = std::move(ours);
    child_ = child;
  }
}

void Leftovers::remove() const {
  for (const MadeDirectories& place : places_) {
    place.removeEmpty();
  }
}

}  // namespace stitchkit
