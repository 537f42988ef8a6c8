// One check a line of the profile.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "backend/launch/launch_profile.h"

using namespace stitchkit;

namespace {

using Arguments = std::vector<std::string>;

LaunchProfile sample() {
  LaunchProfile profile;
  profile.workspace = "/state/workspace";
  profile.etcDirectory = "/state/etc";
  profile.helper = "/state/helper";
  profile.resolvConf = "/run/resolve/resolv.conf";
  profile.tmpBytes = 4096;
  profile.system.directories = {{"/bin", "usr/bin"}, {"/lib64", ""}};
  profile.system.procCovers = {"/proc/irq"};
  return profile;
}

long positionOf(const Arguments& arguments, const Arguments& part) {
  const auto found = std::search(arguments.begin(), arguments.end(), part.begin(), part.end());
  return found == arguments.end() ? -1 : found - arguments.begin();
}

bool holds(const LaunchProfile& profile, const Arguments& part) {
  return positionOf(bubblewrapArguments(profile), part) >= 0;
}

}  // namespace

TEST_CASE("the profile, line by line", "[profile]") {
  const LaunchProfile profile = sample();
  for (const Arguments& line : {
           Arguments{"--unshare-user"},
           Arguments{"--unshare-ipc"},
           Arguments{"--unshare-pid"},
           Arguments{"--unshare-uts"},
           Arguments{"--unshare-cgroup"},
           Arguments{"--unshare-net"},
           Arguments{"--disable-userns"},
           Arguments{"--uid", "1000"},
           Arguments{"--gid", "1000"},
           Arguments{"--hostname", "sandbox"},
           Arguments{"--die-with-parent"},
           Arguments{"--new-session"},
           Arguments{"--cap-drop", "ALL"},
           Arguments{"--ro-bind", "/usr", "/usr"},
           Arguments{"--symlink", "usr/bin", "/bin"},
           Arguments{"--ro-bind", "/lib64", "/lib64"},
           Arguments{"--proc", "/proc"},
           Arguments{"--dev", "/dev", "--perms", "1777", "--size", "67108864", "--tmpfs", "/dev/shm", "--remount-ro",
                     "/dev"},
           Arguments{"--perms", "1777", "--size", "4096", "--tmpfs", "/tmp"},
           Arguments{"--ro-bind", "/state/etc", "/etc"},
           Arguments{"--dir", "/run"},
           Arguments{"--ro-bind", "/state/helper", "/run/stitchkit-launch"},
           Arguments{"--bind", "/state/workspace", "/workspace"},
           Arguments{"--chdir", "/"},
       }) {
    CAPTURE(line);
    CHECK(holds(profile, line));
  }
}

TEST_CASE("the root is made read-only last", "[profile]") {
  const Arguments arguments = bubblewrapArguments(sample());
  CHECK(positionOf(arguments, {"--remount-ro", "/"}) == static_cast<long>(arguments.size()) - 2);
}

TEST_CASE("the host's network comes with its resolv.conf, over the made one", "[profile]") {
  LaunchProfile profile = sample();
  CHECK(!holds(profile, {"/etc/resolv.conf"}));
  profile.network = NetworkMode::kHost;
  const Arguments arguments = bubblewrapArguments(profile);
  CHECK(positionOf(arguments, {"--unshare-net"}) == -1);
  CHECK(positionOf(arguments, {"--ro-bind", "/run/resolve/resolv.conf", "/etc/resolv.conf"}) >
        positionOf(arguments, {"--ro-bind", "/state/etc", "/etc"}));
  profile.resolvConf.clear();
  CHECK(!holds(profile, {"/etc/resolv.conf"}));
}

TEST_CASE("/proc is covered after it is there, for a root that stays root more of it", "[profile]") {
  LaunchProfile profile = sample();
  CHECK(holds(profile, {"--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"}));
  CHECK(!holds(profile, {"/proc/irq"}));
  profile.coverKernel = true;
  const Arguments arguments = bubblewrapArguments(profile);
  CHECK(positionOf(arguments, {"--ro-bind", "/proc/irq", "/proc/irq"}) > positionOf(arguments, {"--proc", "/proc"}));
}

TEST_CASE("every tmpfs has a size, nothing is mounted below the workspace", "[profile]") {
  const Arguments arguments = bubblewrapArguments(sample());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--tmpfs") {
      CHECK(arguments[i - 2] == "--size");
    }
    CHECK(!arguments[i].starts_with("/workspace/"));
  }
}

TEST_CASE("the argument block ends each argument with NUL", "[profile]") {
  const PreparedProfile prepared("/usr/bin/bwrap", sample(), {});
  const Arguments arguments = bubblewrapArguments(sample());
  CHECK(static_cast<std::size_t>(std::count(prepared.argumentBlock().begin(), prepared.argumentBlock().end(), '\0')) ==
        arguments.size());
  CHECK(prepared.argumentBlock().starts_with(std::string("--unshare-user\0--unshare-ipc\0", 29)));
}

TEST_CASE("what is prepared beside the arguments", "[profile]") {
  LaunchProfile profile = sample();
  profile.softOpenFiles = 1024;
  profile.systemCalls = "filter";
  const PreparedProfile prepared("/usr/bin/bwrap", profile, {});
  CHECK(prepared.softOpenFiles() == 1024);
  CHECK(prepared.systemCalls() == "filter");
}

TEST_CASE("system calls are filtered whatever the network is", "[profile]") {
  LaunchProfile profile = sample();
  for (const NetworkMode network : {NetworkMode::kDenied, NetworkMode::kHost}) {
    profile.network = network;
    CHECK(holds(profile, {"--seccomp", "5"}));
  }
}

TEST_CASE("the machine's system directories are found", "[profile]") {
  const SystemLayout layout = probeSystemLayout();
  const auto bin = std::find_if(layout.directories.begin(), layout.directories.end(),
                                [](const SystemDirectory& directory) { return directory.path == "/bin"; });
  REQUIRE(bin != layout.directories.end());
  CHECK(std::find(layout.procCovers.begin(), layout.procCovers.end(), "/proc/irq") != layout.procCovers.end());
}
