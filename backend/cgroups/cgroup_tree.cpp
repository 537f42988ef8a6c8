#include "backend/cgroups/cgroup_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "backend/cgroups/cgroup_files.h"
#include "rpc/base/log.h"

namespace stitchkit {
namespace {

constexpr int kAttempts = 100;

// Locked, unless somebody else holds it.
UniqueFd lockGroup(const std::string& directory) {
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    fd.reset();
  }
  return fd;
}

bool stillNamed(const std::string& directory, const UniqueFd& fd) {
  struct stat named {};
  struct stat held {};
  return ::stat(directory.c_str(), &named) == 0 && ::fstat(fd.get(), &held) == 0 && named.st_ino == held.st_ino;
}

// What killed sidecars have left below `base`. Where a process is still about to end, the next one finds it.
void sweepGroups(const std::string& base) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(base.c_str()), ::closedir);
  while (const dirent* entry = stream ? ::readdir(stream.get()) : nullptr) {
    const std::string name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") {
      const std::string directory = base + "/" + name;
      if (const UniqueFd lock = lockGroup(directory)) {
        removeCgroups(directory);
      }
    }
  }
}

// Somebody else's sweep may take it between being made and being locked. "" when none can be made.
std::string makeInstance(const std::string& base, UniqueFd& lock) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string directory = base + "/" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
    if (::mkdir(directory.c_str(), 0755) != 0) {
      if (errno == EEXIST) {
        continue;
      }
      break;
    }
    lock = lockGroup(directory);
    if (lock && stillNamed(directory, lock)) {
      return directory;
    }
  }
  logLine(LogLevel::kWarning, "no control group can be made in " + base + ": " + errnoName(errno));
  return "";
}

}  // namespace

CgroupTree::CgroupTree(const CgroupDelegation& delegation) {
  std::map<std::string, std::string> instances;
  for (std::size_t i = 0; i < kCgroupControllers; ++i) {
    const std::optional<CgroupBase>& base = delegation.bases[i];
    if (!base) {
      continue;
    }
    if (base->version == 2) {
      sweepGroups(std::filesystem::path(base->directory).parent_path());  // this sidecar's own is locked
      places_[i] = {2, base->directory};
      continue;
    }
    auto [instance, isNew] = instances.try_emplace(base->directory);
    if (isNew) {
      sweepGroups(base->directory);
      instance->second = makeInstance(base->directory, locks_.emplace_back());
    }
    places_[i] = {1, instance->second};
  }
}

CgroupTree::~CgroupTree() {
  for (const std::string& directory : directories()) {
    removeCgroups(directory);
  }
}

std::vector<std::string> CgroupTree::directories() const {
  std::vector<std::string> all;
  for (const Place& place : places_) {
    if (!place.directory.empty() && std::find(all.begin(), all.end(), place.directory) == all.end()) {
      all.push_back(place.directory);
    }
  }
  return all;
}

Result<std::shared_ptr<SessionCgroup>> CgroupTree::makeSession(const std::string& name,
                                                               const SessionLimits& limits) const {
  auto group = std::make_shared<SessionCgroup>();
  for (const CgroupController controller : kAllControllers) {
    if (isLimited(limits, controller) && supports(controller)) {
      const Place& there = place(controller);
      if (Result<void> added = group->add(there.version, there.directory + "/" + name, controller, limits); !added) {
        return std::move(added).error();
      }
    }
  }
  return group->empty() ? nullptr : group;
}

}  // namespace stitchkit
