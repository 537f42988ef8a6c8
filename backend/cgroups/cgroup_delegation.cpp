#include "backend/cgroups/cgroup_delegation.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "backend/cgroups/cgroup_files.h"
#include "rpc/base/error.h"

namespace stitchkit {
namespace {

std::vector<CgroupHierarchy> hierarchiesHere() {
  return parseCgroupHierarchies(readCgroupFile("/proc/self/mountinfo"), readCgroupFile("/proc/self/cgroup"));
}

// 0, or an errno. One that is there is as good.
int makeGroup(const std::string& directory, const std::optional<CgroupOwner>& owner) {
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
    return errno;
  }
  return owner && ::chown(directory.c_str(), owner->uid, owner->gid) != 0 ? errno : 0;
}

// What a user may do in a group that is delegated to them.
int handOverFiles(const std::string& directory, const std::optional<CgroupOwner>& owner) {
  for (const char* file : {"/cgroup.procs", "/cgroup.threads", "/cgroup.subtree_control"}) {
    if (owner && ::chown((directory + file).c_str(), owner->uid, owner->gid) != 0) {
      return errno;
    }
  }
  return 0;
}

std::string baseName(const CgroupRequest& request) {
  return "/stitchkit-sandbox-" + std::to_string(request.owner ? request.owner->uid : ::geteuid());
}

// PATH as a host path below the mount point, or as the hierarchy names it.
std::string parentOf(const CgroupRequest& request, const CgroupHierarchy& hierarchy) {
  if (!request.path) {
    return hierarchy.own;
  }
  const std::string path = std::filesystem::path(*request.path).lexically_normal().string();
  const bool onHost = (path + "/").starts_with(hierarchy.mountPoint + "/");
  return onHost ? path : hierarchy.mountPoint + path;
}

bool has(const std::string& words, const std::string& word) {
  return (" " + words + " ").find(" " + word + " ") != std::string::npos;
}

void delegateOld(const CgroupRequest& request, const CgroupHierarchy& hierarchy, CgroupDelegation& delegation) {
  const std::string directory = parentOf(request, hierarchy) + baseName(request);
  const int failure = makeGroup(directory, request.owner);
  for (std::size_t i = 0; i < kCgroupControllers; ++i) {
    const bool here = std::find(hierarchy.controllers.begin(), hierarchy.controllers.end(), kControllerNames[i]) !=
                      hierarchy.controllers.end();
    if (!here || delegation.bases[i]) {
      continue;
    }
    if (failure == 0 && (request.owner || ::access(directory.c_str(), W_OK | X_OK) == 0)) {
      delegation.bases[i] = CgroupBase{1, directory};
    } else {
      delegation.note += directory + ": " + errnoName(failure != 0 ? failure : EACCES) + "; ";
    }
  }
}

/// One attempt to get a subtree of version 2, undone unless it is kept.
class Subtree {
 public:
  Subtree(const CgroupRequest& request, const CgroupHierarchy& hierarchy)
      : request_(request),
        own_(hierarchy.own),
        parent_(parentOf(request, hierarchy)),
        base_(parent_ + baseName(request)),
        instance_(base_ + "/" + std::to_string(::getpid())),
        leaf_(instance_ + "/sidecar") {}
  Subtree(const Subtree&) = delete;
  Subtree& operator=(const Subtree&) = delete;
  ~Subtree() {
    if (!kept_) {
      writeCgroupFile(own_ + "/cgroup.procs", "0");
      removeCgroups(instance_);
      ::rmdir(base_.c_str());
    }
  }

  [[nodiscard]] const std::string& parent() const { return parent_; }
  [[nodiscard]] const std::string& instance() const { return instance_; }
  void keep() { kept_ = true; }

  /// "" or what failed. `enable` as cgroup.subtree_control takes it.
  std::string make(const std::string& enable) {
    for (const std::string& directory : {base_, instance_, leaf_}) {
      if (const int failure = makeGroup(directory, request_.owner)) {
        return directory + ": " + errnoName(failure);
      }
    }
    if (const int failure = writeCgroupFile(leaf_ + "/cgroup.procs", "0")) {
      return "move into " + leaf_ + ": " + errnoName(failure);
    }
    for (const std::string& directory : {parent_, base_, instance_}) {
      if (const int failure = writeCgroupFile(directory + "/cgroup.subtree_control", enable)) {
        return "controllers of " + directory + ": " + errnoName(failure) +
               (failure == EBUSY ? " (other processes are in this group)" : "");
      }
    }
    const int failure = handOverFiles(instance_, request_.owner);
    return failure == 0 ? "" : instance_ + ": " + errnoName(failure);
  }

 private:
  const CgroupRequest& request_;
  std::string own_, parent_, base_, instance_, leaf_;
  bool kept_ = false;
};

void delegateNew(const CgroupRequest& request, const CgroupHierarchy& hierarchy, const ControllerNames& names,
                 CgroupDelegation& delegation) {
  Subtree subtree(request, hierarchy);
  std::string available = readCgroupFile(subtree.parent() + "/cgroup.controllers");
  available.erase(available.find_last_not_of('\n') + 1);
  std::string enable;
  for (std::size_t i = 0; i < kCgroupControllers; ++i) {
    if (!delegation.bases[i] && has(available, names[i]) && !has(enable, std::string("+") + names[i])) {
      enable += std::string(enable.empty() ? "+" : " +") + names[i];
    }
  }
  if (enable.empty()) {
    return;
  }
  if (const std::string failure = subtree.make(enable); !failure.empty()) {
    delegation.note += failure + "; ";
    return;
  }
  delegation.lock = UniqueFd(::open(subtree.instance().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!delegation.lock || ::flock(delegation.lock.get(), LOCK_EX | LOCK_NB) != 0) {
    delegation.note += "lock: " + errnoName(errno) + "; ";
    return;
  }
  subtree.keep();
  for (std::size_t i = 0; i < kCgroupControllers; ++i) {
    if (!delegation.bases[i] && has(available, names[i])) {
      delegation.bases[i] = CgroupBase{2, subtree.instance()};
    }
  }
}

}  // namespace

CgroupDelegation delegateCgroups(const CgroupRequest& request, const std::vector<CgroupHierarchy>& hierarchies,
                                 const ControllerNames& names) {
  CgroupDelegation delegation;
  if (request.off) {
    delegation.note = "--cgroup none";
    return delegation;
  }
  for (const CgroupHierarchy& hierarchy : hierarchies) {
    if (hierarchy.version == 1) {
      delegateOld(request, hierarchy, delegation);
    }
  }
  for (const CgroupHierarchy& hierarchy : hierarchies) {
    if (hierarchy.version == 2 && !delegation.lock) {
      delegateNew(request, hierarchy, names, delegation);
    }
  }
  return delegation;
}

std::vector<std::string> delegatedDirectories(const CgroupRequest& request) {
  std::vector<std::string> directories;
  for (const CgroupHierarchy& hierarchy : request.off ? std::vector<CgroupHierarchy>() : hierarchiesHere()) {
    directories.push_back(parentOf(request, hierarchy) + baseName(request));
  }
  return directories;
}

CgroupDelegation delegateCgroups(const CgroupRequest& request) {
  return delegateCgroups(request, hierarchiesHere());
}

}  // namespace stitchkit
