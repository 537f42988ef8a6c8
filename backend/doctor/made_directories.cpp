#include "backend/doctor/made_directories.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

namespace stitchkit {
namespace {

constexpr int kOpenFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;

}  // namespace

MadeDirectories::MadeDirectories(const std::string& path) {
  std::filesystem::path existing = std::filesystem::path(path).lexically_normal();
  if (!existing.has_filename()) {
    existing = existing.parent_path();
  }
  while (existing.is_absolute()) {
    existing_ = UniqueFd(::open(existing.c_str(), kOpenFlags));
    if (existing_ || existing == existing.root_path()) {
      return;
    }
    missing_.insert(missing_.begin(), existing.filename().string());
    existing = existing.parent_path();
  }
}

void MadeDirectories::removeEmpty() const {
  if (!existing_) {
    return;
  }
  std::vector<UniqueFd> parents;
  int parent = existing_.get();
  for (std::size_t i = 0; i + 1 < missing_.size(); ++i) {
    parents.emplace_back(::openat(parent, missing_[i].c_str(), kOpenFlags | O_NOFOLLOW));
    if (!parents.back()) {
      return;
    }
    parent = parents.back().get();
  }
  for (std::size_t i = missing_.size(); i-- > 0;) {
    const int directory = i == 0 ? existing_.get() : parents[i - 1].get();
    if (::unlinkat(directory, missing_[i].c_str(), AT_REMOVEDIR) != 0) {
      return;
    }
  }
}

}  // namespace stitchkit
