// The gateway's socket as a guest finds it: to be used and nothing else, and no sign of where on the host it is.
#include "tests/attacks/gateway_client.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <cstring>
#include <filesystem>

namespace stitchkit::testing {
namespace {

constexpr const char* kSocket = "/run/stitchkit-network.sock";

const std::set<std::string> kTampering{"chmod",          "chown",       "utimens", "link", "rename-away",
                                       "symlink-beside", "rename-over", "unlink",  "bind"};

std::string lineWith(const std::string& text, const std::string& what) {
  const auto at = text.find(what);
  const auto start = at == std::string::npos ? at : text.rfind('\n', at);
  return at == std::string::npos ? "" : text.substr(start + 1, text.find('\n', at) - start - 1);
}

TEST_CASE("a guest can neither replace nor change the gateway's socket, under any policy") {
  const Footing footing = GENERATE(from_range(footings()));
  CAPTURE(footing);
  const Upstream upstream;
  Sidecar sidecar(optionsFor(footing));
  for (const Json& policy : {Json("deny-all"), Json("allow-all"), allowOnly(upstream)}) {
    GatewayGuest guest(sidecar, upstream, policy);
    const std::string expected = policy.is_string() ? "403" : "200";
    CAPTURE(policy.dump());
    CHECK(guest.ask() == expected);
    const auto tampered = guest.session().run({guest.session().install("tamper_socket"), kSocket});
    CAPTURE(tampered.out);
    REQUIRE(attemptsOf(tampered.out).size() == 12);
    CHECK(succeeded(attemptsOf(tampered.out)) == std::set<std::string>{"connect"});
    CHECK(guest.session().sh(std::string("rm -rf /run; mv /run /tmp/run; test -S ") + kSocket).exitCode == 0);
    CHECK(guest.ask() == expected);
  }
}

TEST_CASE("control: in a directory of one's own all of that is done to a socket") {
  const ScratchFolder folder(ordinaryUser());
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, (folder / "socket").c_str());
  REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  if (::geteuid() == 0) {
    REQUIRE(::chown(address.sun_path, kOrdinaryUid, kOrdinaryUid) == 0);
  }
  const auto tampered = runProgram({hostProgram("tamper_socket"), folder / "socket"}, ordinaryUser());
  CAPTURE(tampered.output);
  auto expected = kTampering;
  expected.insert("connect");
  CHECK(succeeded(attemptsOf(tampered.output)) == expected);
  CHECK(tampered.output.find("peer-name:" + folder.path()) != std::string::npos);
}

TEST_CASE("a guest does not learn from its socket where the sidecar keeps its state") {
  const Upstream upstream;
  Sidecar sidecar(optionsFor(GENERATE(from_range(footings()))));
  const std::string state = sidecar.state()->path();
  for (const Json& policy : {Json("deny-all"), allowOnly(upstream)}) {
    GatewayGuest guest(sidecar, upstream, policy);
    const auto seen = guest.session().run({guest.session().install("tamper_socket"), kSocket});
    CAPTURE(seen.out);
    CHECK(seen.out.find("connect=ok") != std::string::npos);
    CHECK(seen.out.find(state) == std::string::npos);  // the peer's name
    const auto unixSockets = guest.session().sh("cat /proc/net/unix");
    CHECK(unixSockets.out.find(state) == std::string::npos);
    // SECURITY.md: the mounts show where the workspace lies. The socket must not show more than that.
    const std::string mount = lineWith(guest.session().sh("cat /proc/self/mountinfo").out, kSocket);
    CAPTURE(mount);
    CHECK_FALSE(mount.empty());
    CHECK((mount.find(" ro,") != std::string::npos || mount.find(" ro ") != std::string::npos));
  }
}

TEST_CASE("the socket's name on the host is no way for other users, and goes with its session") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  const Upstream upstream;
  SidecarOptions options;
  options.startAs = startAs;
  Sidecar sidecar(std::move(options));
  GatewayGuest guest(sidecar, upstream);
  const auto sockets = [&] {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(sidecar.state()->path())) {
      if (entry.is_socket()) {
        found.push_back(entry.path());
      }
    }
    return found;
  };
  REQUIRE(sockets().size() == 1);
  struct stat info {};
  REQUIRE(::stat(sockets().front().c_str(), &info) == 0);
  CHECK(info.st_uid == kOrdinaryUid);
  CHECK((info.st_mode & 07) == 0);
  sidecar.call("handle.delete", {{"handle", guest.session().handle()}});
  CHECK(sockets().empty());
}

}  // namespace
}  // namespace stitchkit::testing
