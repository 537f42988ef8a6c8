// What a sidecar and the machine hold at a moment: what must be the same after much work as before it.
#pragma once

#include <sys/types.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace stitchkit::soak {

/// Of one process. Sizes in KiB.
struct SidecarFacts {
  std::map<std::string, long> descriptors;  ///< by what they lead to: "socket", "pipe", "file", "eventpoll" and so on
  long threads = 0;
  long children = 0;  ///< living descendants, the warden left out
  long wardens = 0;
  long zombies = 0;
  long residentKib = 0;
  long sharedOutKib = 0;  ///< PSS; 0 where it may not be read
  long anonymousKib =
      0;  ///< heap and stacks: what a leak of memory grows. Pages of files come and go as the kernel likes

  [[nodiscard]] long allDescriptors() const;
};
SidecarFacts factsOf(pid_t sidecar);

/// Of the machine, as far as it may be ours.
struct MachineFacts {
  std::set<std::string> mounts;     ///< lines of /proc/self/mountinfo, without their numbers
  std::set<std::string> cgroups;    ///< directories below /sys/fs/cgroup with our name in their path
  std::set<std::string> sockets;    ///< of /proc/net/unix, with our name in their path
  std::set<std::string> leftovers;  ///< in /tmp, /var/tmp, /dev/shm and /run, with our name
  std::set<std::string> files;      ///< the state directory's, relative to it; what stands below a `data` folder not
  std::set<std::string> processes;  ///< living descendants of this process, "PID NAME"; and its zombies
};
/// `stateDirectory` of the sidecars that were started from here.
MachineFacts machineFacts(const std::string& stateDirectory);

}  // namespace stitchkit::soak
