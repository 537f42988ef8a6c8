#include "backend/doctor/trial_directory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "backend/storage/files.h"
#include "codingtools/remove_tree.h"

namespace stitchkit {
namespace {

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

}  // namespace

TrialDirectory::TrialDirectory(const std::string& stateDirectory)
    : name_(randomName()), path_(stateDirectory + '/' + name_) {
  std::error_code failed;
  std::filesystem::create_directories(stateDirectory, failed);
  parent_ = UniqueFd(::open(stateDirectory.c_str(), kDirectoryFlags));
  if (failed || !parent_) {
    error_ = failed ? failed.value() : errno;
    return;
  }
  if (::mkdirat(parent_.get(), name_.c_str(), 0700) != 0) {
    error_ = errno;
    return;
  }
  directory_ = UniqueFd(::openat(parent_.get(), name_.c_str(), kDirectoryFlags | O_NOFOLLOW));
  error_ = directory_ ? 0 : errno;
}

TrialDirectory::~TrialDirectory() {
  directory_.reset();
  if (parent_) {
    static_cast<void>(removeEntry(parent_.get(), name_.c_str()));
  }
}

}  // namespace stitchkit
