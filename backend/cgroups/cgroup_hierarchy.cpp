#include "backend/cgroups/cgroup_hierarchy.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace stitchkit {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end != 0) {
      parts.emplace_back(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// The kernel writes space, tab, newline and backslash of a path as \ooo.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain.push_back(static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0')));
      i += 3;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

bool holds(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// The path of /proc/self/cgroup ("4:memory,cpu:/path"; version 2 names no controller) for these controllers.
std::optional<std::string> ownPath(std::string_view selfCgroup, const CgroupHierarchy& hierarchy) {
  for (const std::string& line : split(selfCgroup, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) {
      continue;
    }
    const std::string named = line.substr(first + 1, second - first - 1);
    const bool matches =
        hierarchy.version == 2 ? named.empty() : holds(split(named, ','), hierarchy.controllers.front());
    if (matches) {
      return line.substr(second + 1);
    }
  }
  return std::nullopt;
}

// `root` is what of the hierarchy is mounted.
std::string ownDirectory(const std::string& mountPoint, const std::string& root, const std::string& path) {
  const std::string prefix = root == "/" ? "" : root;
  const bool below = path.compare(0, prefix.size(), prefix) == 0 &&
                     (path.size() == prefix.size() || path[prefix.size()] == '/') &&
                     path.find("/..") == std::string::npos;
  const std::string rest = below ? path.substr(prefix.size()) : "";
  return rest == "/" ? mountPoint : mountPoint + rest;
}

// "36 35 0:31 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory"
std::optional<CgroupHierarchy> parseMount(const std::string& line, std::string_view selfCgroup) {
  constexpr std::size_t kRoot = 3;
  constexpr std::size_t kMountPoint = 4;
  const std::vector<std::string> fields = split(line, ' ');
  const auto dash = std::find(fields.begin(), fields.end(), "-");
  if (fields.size() <= kMountPoint || fields.end() - dash < 4) {
    return std::nullopt;
  }
  CgroupHierarchy hierarchy;
  const std::string& type = dash[1];
  if (type == "cgroup2") {
    hierarchy.version = 2;
  } else if (type == "cgroup") {
    hierarchy.version = 1;
    for (const char* controller : {"memory", "pids", "cpu"}) {
      if (holds(split(dash[3], ','), controller)) {
        hierarchy.controllers.emplace_back(controller);
      }
    }
  }
  if (hierarchy.version == 0 || (hierarchy.version == 1 && hierarchy.controllers.empty())) {
    return std::nullopt;
  }
  const std::optional<std::string> path = ownPath(selfCgroup, hierarchy);
  if (!path) {
    return std::nullopt;
  }
  hierarchy.mountPoint = unescaped(fields[kMountPoint]);
  hierarchy.own = ownDirectory(hierarchy.mountPoint, unescaped(fields[kRoot]), *path);
  return hierarchy;
}

}  // namespace

std::vector<CgroupHierarchy> parseCgroupHierarchies(std::string_view mountinfo, std::string_view selfCgroup) {
  std::vector<CgroupHierarchy> found;
  for (const std::string& line : split(mountinfo, '\n')) {
    if (std::optional<CgroupHierarchy> hierarchy = parseMount(line, selfCgroup)) {
      found.push_back(std::move(*hierarchy));
    }
  }
  return found;
}

}  // namespace stitchkit
