#include "backend/doctor/cgroup_facts.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace stitchkit {
namespace {

/// A mounted hierarchy: where, and which part of it stands there.
struct Hierarchy {
  std::string mountPoint;
  std::string mountedRoot;
};

std::vector<std::string> words(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    parts.push_back(std::move(part));
  }
  return parts;
}

bool contain(const std::vector<std::string>& list, std::string_view word) {
  for (const std::string& item : list) {
    if (item == word) {
      return true;
    }
  }
  return false;
}

std::vector<std::string> lines(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> all;
  for (std::string line; std::getline(file, line);) {
    all.push_back(std::move(line));
  }
  return all;
}

bool writable(const std::string& path) {
  return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

// The hierarchy of a controller of version 1; with "" that of version 2.
std::optional<Hierarchy> findHierarchy(const std::string& root, std::string_view controller) {
  for (const std::string& line : lines(root + "/proc/self/mountinfo")) {
    const std::vector<std::string> fields = words(line, ' ');
    std::size_t dash = 6;  // optional fields come before it
    while (dash < fields.size() && fields[dash] != "-") {
      ++dash;
    }
    if (dash + 3 >= fields.size()) {
      continue;
    }
    const bool second = fields[dash + 1] == "cgroup2";
    const bool first = fields[dash + 1] == "cgroup" && contain(words(fields[dash + 3], ','), controller);
    if (controller.empty() ? second : first) {
      return Hierarchy{fields[4], fields[3]};
    }
  }
  return std::nullopt;
}

// The path of this process's group in a hierarchy, of /proc/self/cgroup: "4:memory:/path", "0::/path".
std::string ownGroup(const std::string& root, std::string_view controller) {
  for (const std::string& line : lines(root + "/proc/self/cgroup")) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string list = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? list.empty() : contain(words(list, ','), controller)) {
      return line.substr(second + 1);
    }
  }
  return "";
}

std::string directoryOf(const std::string& root, std::string_view controller) {
  const std::optional<Hierarchy> hierarchy = findHierarchy(root, controller);
  if (!hierarchy) {
    return "";
  }
  std::string group = ownGroup(root, controller);
  if (hierarchy->mountedRoot != "/" && group.starts_with(hierarchy->mountedRoot)) {
    group.erase(0, hierarchy->mountedRoot.size());
  }
  return root + hierarchy->mountPoint + (group == "/" ? "" : group);
}

CgroupFacts ofSecondVersion(const std::string& root) {
  const std::string directory = directoryOf(root, "");
  CgroupFacts facts;
  if (directory.empty() || !writable(directory) || !writable(directory + "/cgroup.procs") ||
      !writable(directory + "/cgroup.subtree_control")) {
    return facts;
  }
  std::ifstream file(directory + "/cgroup.controllers");
  const std::vector<std::string> controllers{std::istream_iterator<std::string>(file), {}};
  facts.memory = contain(controllers, "memory");
  facts.processes = contain(controllers, "pids");
  facts.cpu = contain(controllers, "cpu");
  facts.how = "cgroup v2";
  return facts;
}

}  // namespace

CgroupFacts readCgroupFacts(const std::string& root) {
  CgroupFacts facts = ofSecondVersion(root);
  const auto first = [&root](const char* controller) {
    const std::string directory = directoryOf(root, controller);
    return !directory.empty() && writable(directory);
  };
  if (!facts.memory && !facts.processes && !facts.cpu) {
    facts.memory = first("memory");
    facts.processes = first("pids");
    facts.cpu = first("cpu");
    facts.how = facts.memory || facts.processes || facts.cpu ? "cgroup v1" : "";
  }
  return facts;
}

}  // namespace stitchkit
