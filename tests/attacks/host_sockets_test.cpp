// What listens on the host, and what only the network's owner may do.
#include "tests/attacks/attempts.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <cstddef>
#include <cstring>

namespace stitchkit::testing {
namespace {

// Listeners of the host's: on the loopback interface, under an abstract name, in the file system.
struct Listeners {
  Listeners() {
    loopback = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in inet{};
    inet.sin_family = AF_INET;
    inet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof inet;
    REQUIRE(::bind(loopback.get(), reinterpret_cast<sockaddr*>(&inet), sizeof inet) == 0);
    REQUIRE(::listen(loopback.get(), 16) == 0);
    REQUIRE(::getsockname(loopback.get(), reinterpret_cast<sockaddr*>(&inet), &size) == 0);
    port = ntohs(inet.sin_port);
    abstractSocket = listenUnix(std::string(1, '\0') + abstractName);
    fileSocket = listenUnix(folder / "socket");
    REQUIRE(::chmod((folder / "socket").c_str(), 0777) == 0);
  }

  static UniqueFd listenUnix(const std::string& name) {
    UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(name.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listener.get(), 16) == 0);
    return listener;
  }

  [[nodiscard]] std::vector<std::string> tries(const std::string& program) const {
    return {program,
            "abstract:" + abstractName,
            "path:" + (folder / "socket"),
            "tcp:" + std::to_string(port),
            "packet",
            "raw",
            "netlink-up"};
  }

  const ScratchFolder folder;
  const std::string abstractName = "stitchkit-test-" + uniqueDigits();
  UniqueFd loopback;
  UniqueFd abstractSocket;
  UniqueFd fileSocket;
  int port = 0;
};

TEST_CASE("under deny-all nothing of the host's can be reached") {
  const Footing footing = GENERATE(from_range(footings()));
  CAPTURE(footing);
  const Listeners listeners;
  Sidecar sidecar(optionsFor(footing));
  Session session(sidecar);
  const auto tries = session.run(listeners.tries(session.install("sockets")));
  CAPTURE(tries.out);
  REQUIRE(attemptsOf(tries.out).size() == 6);
  CHECK(succeeded(attemptsOf(tries.out)).empty());
  // No interface that leads anywhere.
  CHECK(session.sh("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '").out == "lo\n");
}

TEST_CASE("under allow-all the host's network is there, its file system and its rights are not") {
  const Footing footing = GENERATE(from_range(footings()));
  CAPTURE(footing);
  const Listeners listeners;
  Sidecar sidecar(optionsFor(footing));
  Session session(sidecar, "allow-all");
  const auto tries = session.run(listeners.tries(session.install("sockets")));
  CAPTURE(tries.out);
  const auto names = succeeded(attemptsOf(tries.out));
  // Also the control for the case above: the listener can be reached.
  CHECK(names.count("tcp") == 1);
  for (const char* name : {"path", "packet", "raw", "netlink-up"}) {
    CHECK(names.count(name) == 0);
  }
}

TEST_CASE("control: without a sandbox all of it can be reached") {
  const Listeners listeners;
  const auto tries = runProgram(listeners.tries(hostProgram("sockets")));
  CAPTURE(tries.output);
  const auto names = succeeded(attemptsOf(tries.output));
  for (const char* name : {"abstract", "path", "tcp"}) {
    CHECK(names.count(name) == 1);
  }
  if (::geteuid() == 0) {
    CHECK(names.count("packet") == 1);
    CHECK(names.count("raw") == 1);
  }
}

}  // namespace
}  // namespace stitchkit::testing
