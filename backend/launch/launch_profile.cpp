#include "backend/launch/launch_profile.h"

#include <initializer_list>
#include <string_view>
#include <utility>

#include "backend/cgroups/session_cgroup.h"

namespace stitchkit {
namespace {

using Arguments = std::vector<std::string>;

void append(Arguments& arguments, std::initializer_list<std::string_view> more) {
  for (const std::string_view argument : more) {
    arguments.emplace_back(argument);
  }
}

void appendNamespaces(Arguments& arguments, const LaunchProfile& profile) {
  // --disable-userns asks for a user namespace that is named, not implied.
  append(arguments, {"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup"});
  if (profile.network == NetworkMode::kDenied) {
    append(arguments, {"--unshare-net"});
  }
  append(arguments, {"--disable-userns", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox"});
  append(arguments, {"--die-with-parent", "--new-session", "--cap-drop", "ALL"});
  append(arguments, {"--seccomp", std::to_string(kSystemCallsFd)});
}

void appendSystem(Arguments& arguments, const SystemLayout& system) {
  append(arguments, {"--ro-bind", "/usr", "/usr"});
  for (const SystemDirectory& directory : system.directories) {
    if (directory.symlinkTarget.empty()) {
      append(arguments, {"--ro-bind", directory.path, directory.path});
    } else {
      append(arguments, {"--symlink", directory.symlinkTarget, directory.path});
    }
  }
}

void appendTmpfs(Arguments& arguments, std::uint64_t bytes, std::string_view path) {
  append(arguments, {"--perms", "1777", "--size", std::to_string(bytes), "--tmpfs", path});
}

void appendKernelFiles(Arguments& arguments, const LaunchProfile& profile) {
  // Of /proc/sys some belongs to the guest's own namespaces and would be writable; nothing needs that.
  append(arguments, {"--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"});
  if (profile.coverKernel) {
    for (const std::string& path : profile.system.procCovers) {
      append(arguments, {"--ro-bind", path, path});
    }
  }
  append(arguments, {"--dev", "/dev"});
  appendTmpfs(arguments, kSharedMemoryBytes, "/dev/shm");
  append(arguments, {"--remount-ro", "/dev"});
}

}  // namespace

std::vector<std::string> bubblewrapArguments(const LaunchProfile& profile) {
  Arguments arguments;
  appendNamespaces(arguments, profile);
  appendSystem(arguments, profile.system);
  appendKernelFiles(arguments, profile);
  appendTmpfs(arguments, profile.tmpBytes, "/tmp");
  append(arguments, {"--ro-bind", profile.etcDirectory, "/etc"});
  if (profile.network == NetworkMode::kHost && !profile.resolvConf.empty()) {
    append(arguments, {"--ro-bind", profile.resolvConf, "/etc/resolv.conf"});
  }
  append(arguments, {"--dir", "/run", "--ro-bind", profile.helper, kGuestHelperPath});
  if (!profile.gateway.empty()) {
    append(arguments, {"--ro-bind", profile.gateway, kGuestGatewayPath});
  }
  append(arguments, {"--bind", profile.workspace, "/workspace", "--chdir", "/", "--remount-ro", "/"});
  return arguments;
}

PreparedProfile::PreparedProfile(std::string bubblewrap, const LaunchProfile& profile, DirectoryIdentity workspace,
                                 Warden* warden, std::shared_ptr<SessionCgroup> cgroup)
    : bubblewrap_(std::move(bubblewrap)),
      softOpenFiles_(profile.softOpenFiles),
      systemCalls_(profile.systemCalls),
      workspace_(workspace),
      warden_(warden),
      cgroup_(std::move(cgroup)) {
  for (const std::string& argument : bubblewrapArguments(profile)) {
    argumentBlock_ += argument;
    argumentBlock_ += '\0';
  }
}

bool PreparedProfile::entersGroup() const noexcept {
  return cgroup_ && cgroup_->guestEntrance() >= 0;
}

}  // namespace stitchkit
