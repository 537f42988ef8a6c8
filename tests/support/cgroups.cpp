#include "tests/support/cgroups.h"

#include "backend/cgroups/cgroup_hierarchy.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace stitchkit::testing {
namespace {

namespace fs = std::filesystem;

std::vector<CgroupHierarchy> hierarchiesOf(const std::string& process) {
  return parseCgroupHierarchies(readFile("/proc/self/mountinfo"), readFile("/proc/" + process + "/cgroup"));
}

bool holds(const CgroupHierarchy& hierarchy, const std::string& controller) {
  return std::find(hierarchy.controllers.begin(), hierarchy.controllers.end(), controller) !=
         hierarchy.controllers.end();
}

void removeTree(const fs::path& directory) {
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(directory, failure)) {
    if (entry.is_directory(failure)) {
      removeTree(entry.path());
    }
  }
  ::rmdir(directory.c_str());
}

void collectSidecarGroups(const fs::path& directory, pid_t sidecar, int depth, std::vector<std::string>& found) {
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(directory, failure)) {
    if (!entry.is_directory(failure)) {
      continue;
    }
    const std::string parent = directory.filename().string();
    const std::string name = entry.path().filename().string();
    const std::string pid = std::to_string(sidecar);
    if (parent.starts_with("stitchkit-sandbox-") && (name == pid || name.starts_with(pid + "-"))) {
      found.push_back(entry.path().string());
    } else if (depth > 0) {
      collectSidecarGroups(entry.path(), sidecar, depth - 1, found);
    }
  }
}

}  // namespace

std::string groupOf(pid_t pid, const std::string& controller) {
  std::string version2;
  for (const CgroupHierarchy& hierarchy : hierarchiesOf(std::to_string(pid))) {
    if (holds(hierarchy, controller)) {
      return hierarchy.own;
    }
    version2 = hierarchy.version == 2 ? hierarchy.own : version2;
  }
  return version2;
}

std::vector<std::string> sidecarGroups(pid_t sidecar) {
  std::vector<std::string> found;
  for (const CgroupHierarchy& hierarchy : hierarchiesOf("self")) {
    collectSidecarGroups(hierarchy.mountPoint, sidecar, 4, found);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<std::string> sessionGroups(pid_t sidecar) {
  std::vector<std::string> found;
  for (const std::string& group : sidecarGroups(sidecar)) {
    std::error_code failure;
    for (const auto& entry : fs::directory_iterator(group, failure)) {
      if (entry.is_directory(failure) && entry.path().filename() != "sidecar") {
        found.push_back(entry.path().string());
      }
    }
  }
  return found;
}

DelegatedGroups::DelegatedGroups() : path_("/stitchkit-test-" + uniqueDigits()) {
  for (const CgroupHierarchy& hierarchy : hierarchiesOf("self")) {
    const std::string directory = hierarchy.mountPoint + path_;
    if (::mkdir(directory.c_str(), 0755) == 0) {
      directories_.push_back(directory);
      if (::chown(directory.c_str(), kOrdinaryUid, kOrdinaryUid) != 0) {
        throw std::runtime_error("chown of " + directory);
      }
    }
  }
}

DelegatedGroups::~DelegatedGroups() {
  for (const std::string& directory : directories_) {
    eventually([&] { return removeTree(directory), !fs::exists(directory); });
  }
}

SidecarOptions limitingOptions(StartAs startAs, const DelegatedGroups& delegated) {
  SidecarOptions options;
  options.startAs = startAs;
  if (startAs == StartAs::kOrdinaryUser) {
    options.arguments = {"--cgroup", delegated.path()};
  }
  return options;
}

}  // namespace stitchkit::testing
