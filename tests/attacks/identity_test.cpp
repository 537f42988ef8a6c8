// Who the sidecar and its guests are, seen from the host.
#include "tests/attacks/attempts.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <sstream>

namespace stitchkit::testing {
namespace {

bool holdsRoot(const std::string& ids) {
  std::istringstream words(ids);
  for (std::string word; words >> word;) {
    if (word == "0") {
      return true;
    }
  }
  return false;
}

struct stat infoOf(const std::string& path) {
  struct stat info {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info;
}

TEST_CASE("neither the sidecar nor anything below it is root, and its files are not root's") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  SidecarOptions options;
  options.startAs = startAs;
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  const std::string marker = "60.0" + uniqueDigits();
  sidecar.call("session.spawn", session.commandParams({"/bin/sleep", marker}));
  REQUIRE(eventually([&] { return !guestsAlive(marker).empty(); }));

  auto processes = descendantsOf(sidecar.pid());
  REQUIRE(processes.size() >= 2);
  processes.push_back(sidecar.pid());
  for (const pid_t pid : processes) {
    CAPTURE(pid, readFile("/proc/" + std::to_string(pid) + "/comm"));
    CHECK_FALSE(holdsRoot(statusLine(pid, "Uid")));
    CHECK_FALSE(holdsRoot(statusLine(pid, "Gid")));
    CHECK_FALSE(holdsRoot(statusLine(pid, "Groups")));
  }
  CHECK(statusLine(sidecar.pid(), "CapEff") == std::string(16, '0'));
  CHECK(statusLine(sidecar.pid(), "CapPrm") == std::string(16, '0'));

  session.sh("echo x > made; mkdir dir; ln -s made link");
  for (const char* name : {"", "/made", "/dir", "/link"}) {
    CHECK(infoOf(session.hostWorkspace() + name).st_uid == kOrdinaryUid);
    CHECK(infoOf(session.hostWorkspace() + name).st_gid == kOrdinaryUid);
  }
}

TEST_CASE("the guest is agent, 1000:1000, at home in /workspace") {
  const Footing footing = GENERATE(from_range(footings()));
  CAPTURE(footing);
  Sidecar sidecar(optionsFor(footing));
  Session session(sidecar);
  CHECK(session.sh("id -u; id -g; whoami; hostname; echo $HOME; pwd").out ==
        "1000\n1000\nagent\nsandbox\n/workspace\n/workspace\n");
  // One user, mapped to one; setgroups is closed.
  CHECK(session.sh("cat /proc/self/setgroups").out == "deny\n");
  CHECK(session.sh("awk '{print $1, $3}' /proc/self/uid_map").out == "1000 1\n");
}

TEST_CASE("a sidecar started by root becomes the user that it is told") {
  if (::geteuid() != 0) {
    return;
  }
  SidecarOptions options;
  options.arguments = {"--user", "12345"};
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  CHECK(statusLine(sidecar.pid(), "Uid") == "12345\t12345\t12345\t12345");
  session.sh("echo x > made");
  CHECK(infoOf(session.hostWorkspace() + "/made").st_uid == 12345);
}

TEST_CASE("root is refused as the user to become") {
  if (::geteuid() != 0) {
    return;
  }
  const std::string user = GENERATE("0", "root", "no-such-account", "4294967295");
  CAPTURE(user);
  SidecarOptions options;
  options.arguments = {"--user", user};
  Sidecar sidecar(std::move(options));
  const auto ended = sidecar.waitForExit();
  REQUIRE(ended);
  CHECK(ended->code == 64);  // a usage error
  CHECK(sidecar.stderrText().find("user") != std::string::npos);
}

TEST_CASE("initialize may still name another state directory after root was given up") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  SidecarOptions options;
  options.startAs = startAs;
  Sidecar sidecar(std::move(options));
  const std::string other = sidecar.state()->folder() / "other";
  sidecar.call("initialize", {{"protocolVersion", 1}, {"backend", {{"stateDirectory", other}}}});
  Session session(sidecar);
  CHECK(session.sh("echo hi").out == "hi\n");
  CHECK(infoOf(other).st_uid == kOrdinaryUid);
  // The helper that made it is gone: only launches' processes may be below the sidecar now, and no command is alive.
  CHECK(eventually([&] { return commandsOf(sidecar.pid()).empty(); }));
}

TEST_CASE("a state directory that holds other things is refused at the start, and stays as it was") {
  if (::geteuid() != 0) {
    return;
  }
  SidecarOptions options;
  options.state = std::make_shared<StateDirectory>(StartAs::kRoot);
  REQUIRE(::mkdir(options.state->path().c_str(), 0755) == 0);
  writeFile(options.state->path() + "/notes.txt", "mine");
  const auto state = options.state;
  Sidecar sidecar(std::move(options));
  const auto ended = sidecar.waitForExit();
  REQUIRE(ended);
  CHECK(ended->code > 0);
  CHECK(infoOf(state->path()).st_uid == 0);
  CHECK((infoOf(state->path()).st_mode & 07777) == 0755);
}

}  // namespace
}  // namespace stitchkit::testing
