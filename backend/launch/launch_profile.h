// The launch profile: from what a session is allowed to bubblewrap's arguments, as a pure function.
//
// Rules that every profile keeps (DESIGN.md, "The launch profile"): the guest is agent, 1000:1000, on host `sandbox`,
// without capabilities, in namespaces of its own, unable to make further user namespaces; every tmpfs that it can
// write has a size; the root is read-only after set-up; nothing is mounted below /workspace.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/launch/system_layout.h"

namespace stitchkit {

class SessionCgroup;
class Warden;

enum class NetworkMode : std::uint8_t {
  kDenied,  ///< a network namespace with nothing in it but a loopback of its own
  kHost,    ///< the host's network and its resolv.conf
};

/// Where the launch helper is in the guest; beside it is room for other files that the sidecar lends.
inline constexpr char kGuestHelperPath[] = "/run/stitchkit-launch";
/// The network gateway in the guest (PROTOCOL.md, 6).
inline constexpr char kGuestGatewayPath[] = "/run/stitchkit-network.sock";
/// Bytes of the guest's /dev/shm: for semaphores and process pools, no store for files.
inline constexpr std::uint64_t kSharedMemoryBytes = 64UL * 1024 * 1024;

/// The descriptor that bubblewrap reads the filter of system calls from.
inline constexpr int kSystemCallsFd = 5;

/// Host paths are absolute. Each directory above them must be searchable by the user that the sidecar runs as.
struct LaunchProfile {
  std::string workspace;     ///< host directory that becomes /workspace, writable
  std::string etcDirectory;  ///< SupportFiles: becomes /etc, read-only
  std::string helper;        ///< SupportFiles: becomes kGuestHelperPath, read-only
  std::string gateway;       ///< the host's socket that becomes kGuestGatewayPath; "" for none
  std::string resolvConf;    ///< the host's real resolv.conf; bound only under kHost; "" when it has none
  NetworkMode network = NetworkMode::kDenied;
  std::uint64_t tmpBytes = 0;       ///< size of /tmp
  std::uint64_t softOpenFiles = 0;  ///< soft limit of open files in the guest, within the hard one; 0: the sidecar's
  std::string systemCalls;          ///< systemCallFilter(); without it no launch comes off
  bool coverKernel = false;  ///< the sidecar stays root (--allow-root): cover what else root may write below /proc
  SystemLayout system;
};

/// bubblewrap's arguments up to the program, which is kGuestHelperPath.
std::vector<std::string> bubblewrapArguments(const LaunchProfile& profile);

/// Which directory a path should mean, whatever is put in its place meanwhile.
struct DirectoryIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  friend bool operator==(const DirectoryIdentity&, const DirectoryIdentity&) = default;
};

/// A profile made ready for many launches. Immutable, so that it may be shared.
class PreparedProfile {
 public:
  /// `bubblewrap` is the host path of bwrap; `workspace` is what a launch must find on /workspace to go on; `warden`
  /// outlives every launch. Without one a hostile guest can outlive a killed sidecar.
  PreparedProfile(std::string bubblewrap, const LaunchProfile& profile, DirectoryIdentity workspace,
                  Warden* warden = nullptr, std::shared_ptr<SessionCgroup> cgroup = nullptr);

  [[nodiscard]] const std::string& bubblewrap() const noexcept { return bubblewrap_; }
  [[nodiscard]] const DirectoryIdentity& workspace() const noexcept { return workspace_; }
  [[nodiscard]] Warden* warden() const noexcept { return warden_; }
  /// What holds for all launches of the session together; nullptr: nothing does.
  [[nodiscard]] const std::shared_ptr<SessionCgroup>& cgroup() const noexcept { return cgroup_; }
  /// Whether the guest's program enters a control group of its own (SessionCgroup::guestEntrance).
  [[nodiscard]] bool entersGroup() const noexcept;
  /// LaunchProfile::softOpenFiles
  [[nodiscard]] std::uint64_t softOpenFiles() const noexcept { return softOpenFiles_; }
  /// LaunchProfile::systemCalls
  [[nodiscard]] const std::string& systemCalls() const noexcept { return systemCalls_; }
  /// The arguments as `--args FD` reads them: each ends in NUL.
  [[nodiscard]] const std::string& argumentBlock() const noexcept { return argumentBlock_; }

 private:
  std::string bubblewrap_;
  std::string argumentBlock_;
  std::uint64_t softOpenFiles_;
  std::string systemCalls_;
  DirectoryIdentity workspace_;
  Warden* warden_;
  std::shared_ptr<SessionCgroup> cgroup_;
};

}  // namespace stitchkit
