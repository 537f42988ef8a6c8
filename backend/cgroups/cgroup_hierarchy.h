// Which control group hierarchies this machine has, and where this process stands in each: /proc/self/mountinfo and
// /proc/self/cgroup as values. Version 1 mounts each controller (or a few together) by itself, version 2 has one
// hierarchy whose controllers stand in files; a machine may have both.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stitchkit {

struct CgroupHierarchy {
  int version = 0;                       ///< 1 or 2
  std::vector<std::string> controllers;  ///< of version 1: those that are mounted together; of version 2 none
  std::string mountPoint;                ///< host path
  std::string own;                       ///< host path of this process's group: mountPoint or below
};

/// Those that are mounted, in the order of `mountinfo`. A group that lies outside of what is mounted (a container sees
/// a part only) is taken for the mount point.
std::vector<CgroupHierarchy> parseCgroupHierarchies(std::string_view mountinfo, std::string_view selfCgroup);

}  // namespace stitchkit
