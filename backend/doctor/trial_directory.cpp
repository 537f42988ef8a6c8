#include "backend/doctor/trial_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "backend/storage/files.h"
#include "backend/storage/support_names.h"
#include "codingtools/remove_tree.h"

namespace stitchkit {
namespace {

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
// A sweeper may take a new directory for a leftover until its lock is held.
constexpr int kMaxMakeAttempts = 100;
constexpr useconds_t kMakeIntervalUs = 1000;

}  // namespace

const std::string& TrialDirectory::name() {
  static const std::string made = std::string(kSupportBuildPrefix) + randomName();
  return made;
}

TrialDirectory::TrialDirectory(const std::string& stateDirectory) : path_(stateDirectory + "/support/" + name()) {
  error_ = makeParents(stateDirectory);
  for (int attempt = 0; error_ == 0 && !directory_ && attempt < kMaxMakeAttempts; ++attempt) {
    error_ = make();
  }
  if (error_ == 0 && !directory_) {
    error_ = EBUSY;
  }
}

TrialDirectory::~TrialDirectory() {
  if (directory_) {
    static_cast<void>(removeEntry(parent_.get(), name().c_str()));
  }
}

int TrialDirectory::makeParents(const std::string& stateDirectory) {
  std::error_code failed;
  std::filesystem::create_directories(stateDirectory, failed);
  if (failed) {
    return failed.value();
  }
  // A backend's directory stands beside `support`, which may have been made when more was allowed.
  const UniqueFd state(::open(stateDirectory.c_str(), kDirectoryFlags));
  if (!state || ::faccessat(state.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
    return errno;
  }
  if (::mkdirat(state.get(), "support", 0755) != 0 && errno != EEXIST) {
    return errno;
  }
  parent_ = UniqueFd(::openat(state.get(), "support", kDirectoryFlags));
  return parent_ ? 0 : errno;
}

int TrialDirectory::make() {
  if (::mkdirat(parent_.get(), name().c_str(), 0700) != 0) {
    if (errno != EEXIST) {
      return errno;
    }
    ::usleep(kMakeIntervalUs);  // a sweeper is removing it
    return 0;
  }
  UniqueFd made(::openat(parent_.get(), name().c_str(), kDirectoryFlags | O_NOFOLLOW));
  if (!made) {
    return errno == ENOENT ? 0 : errno;
  }
  if (::flock(made.get(), LOCK_EX | LOCK_NB) == 0 && names(parent_.get(), name().c_str(), made.get())) {
    directory_ = std::move(made);
    return 0;
  }
  // A file system without locks is told of by a trial of its own; a sweeper has it otherwise.
  if (errno != EWOULDBLOCK && names(parent_.get(), name().c_str(), made.get())) {
    directory_ = std::move(made);
  }
  return 0;
}

}  // namespace stitchkit
