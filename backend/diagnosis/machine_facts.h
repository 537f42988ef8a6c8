// What the machine says about namespaces: a few small files below /proc. Facts only, no judgement.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace stitchkit {

struct MachineFacts {
  bool userNamespaces = true;                   ///< the kernel has them (/proc/self/ns/user)
  std::optional<bool> unprivilegedNamespaces;   ///< kernel.unprivileged_userns_clone (Debian's kernels and others')
  bool appArmorRestricts = false;               ///< kernel.apparmor_restrict_unprivileged_userns
  std::vector<std::string> limitsAtZero;        ///< of user.max_*_namespaces, by name
  bool filtered = false;                        ///< this process is under a seccomp filter
  std::string container;                        ///< "Docker", "Podman", "Kubernetes", "LXC"; "" for none that is known
  std::vector<std::string> coveredProcEntries;  ///< mount points below /proc that keep a fresh one from being mounted
};

/// Some ten small files, well under a millisecond; none of them can block. `root` stands before each path; "" for this
/// machine. What cannot be read counts as not there.
MachineFacts readMachineFacts(const std::string& root = "");

}  // namespace stitchkit
