#include "backend/diagnosis/machine_facts.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "rpc/base/unique_fd.h"

namespace stitchkit {
namespace {

constexpr std::size_t kMaxFileBytes = 256UL * 1024;

std::string readText(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  std::string text;
  std::array<char, 8192> part;
  while (file && text.size() < kMaxFileBytes) {
    const ssize_t size = ::read(file.get(), part.data(), part.size());
    if (size <= 0) {
      break;
    }
    text.append(part.data(), static_cast<std::size_t>(size));
  }
  return text;
}

bool isThere(const std::string& path) {
  return ::faccessat(AT_FDCWD, path.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

std::optional<bool> readSwitch(const std::string& path) {
  const std::string text = readText(path);
  return text.empty() ? std::nullopt : std::optional(text.front() != '0');
}

std::vector<std::string> limitsAtZero(const std::string& directory) {
  std::vector<std::string> names;
  for (const char* kind : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}) {
    const std::string name = std::string("max_") + kind + "_namespaces";
    if (readSwitch(directory + name) == false) {
      names.push_back("user." + name);
    }
  }
  return names;
}

bool isFiltered(const std::string& status) {
  constexpr std::string_view kField = "\nSeccomp:\t";
  const std::size_t found = status.find(kField);
  return found != std::string::npos && status.compare(found + kField.size(), 1, "2") == 0;
}

std::string containerOf(const std::string& root) {
  const std::string groups = readText(root + "/proc/self/cgroup");
  constexpr std::pair<const char*, const char*> kGroups[] = {
      {"kubepods", "Kubernetes"}, {"libpod", "Podman"}, {"docker", "Docker"}, {"lxc", "LXC"}};
  for (const auto& [part, name] : kGroups) {
    if (groups.find(part) != std::string::npos) {
      return name;
    }
  }
  if (isThere(root + "/run/.containerenv")) {
    return "Podman";
  }
  return isThere(root + "/.dockerenv") ? "Docker" : "";
}

// Of a line of mountinfo: "36 35 98:0 /root /mount/point options ...".
std::string_view mountPoint(std::string_view line) {
  for (int field = 0; field < 4; ++field) {
    const std::size_t space = line.find(' ');
    line = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
  }
  return line.substr(0, line.find(' '));
}

// A mount covers something unless it is on one of the folders that the kernel keeps empty for that.
std::vector<std::string> coveredProcEntries(std::string_view mounts) {
  std::vector<std::string> covered;
  while (!mounts.empty()) {
    const std::size_t end = std::min(mounts.find('\n'), mounts.size());
    const std::string_view point = mountPoint(mounts.substr(0, end));
    const bool empty = point == "/proc/sys/fs/binfmt_misc" || point == "/proc/fs/nfsd";
    if (point.starts_with("/proc/") && !empty) {
      covered.emplace_back(point);
    }
    mounts.remove_prefix(std::min(end + 1, mounts.size()));
  }
  return covered;
}

}  // namespace

MachineFacts readMachineFacts(const std::string& root) {
  MachineFacts facts;
  const std::string sys = root + "/proc/sys/";
  facts.userNamespaces = isThere(root + "/proc/self/ns/user");
  facts.unprivilegedNamespaces = readSwitch(sys + "kernel/unprivileged_userns_clone");
  facts.appArmorRestricts = readSwitch(sys + "kernel/apparmor_restrict_unprivileged_userns").value_or(false);
  facts.limitsAtZero = limitsAtZero(sys + "user/");
  facts.filtered = isFiltered(readText(root + "/proc/self/status"));
  facts.container = containerOf(root);
  facts.coveredProcEntries = coveredProcEntries(readText(root + "/proc/self/mountinfo"));
  return facts;
}

}  // namespace stitchkit
