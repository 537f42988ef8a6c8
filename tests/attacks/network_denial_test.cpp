// Every way out of a guest's network, under each policy that denies it. The test plays the host in a network of its own
// (own_network.h), so that even what gets through stays there.
#include "tests/attacks/attempts.h"
#include "tests/attacks/own_network.h"
#include "tests/attacks/upstream.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <catch2/catch.hpp>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>

namespace stitchkit::testing {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr const char* kLoopback6 = "::1";

UniqueFd bindAbstract(int type, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  UniqueFd end(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(end.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      (type != SOCK_DGRAM && ::listen(end.get(), 16) != 0)) {
    throw std::system_error(errno, std::generic_category(), "abstract socket");
  }
  return end;
}

/// What there is on the host to be reached.
struct Host {
  Bound tcp = listenAt(kLoopback);
  Bound tcp6 = listenAt(kLoopback6);
  Bound tcpInterface = listenAt(kHostAddress);
  Bound tcpInterface6 = listenAt(kHostAddress6);
  Answerer udp{kLoopback};
  Answerer udp6{kLoopback6};
  Answerer udpInterface{kHostAddress};
  Answerer names{kNameServer, 53};
  std::string name = "stitchkit-test-" + uniqueDigits();
  UniqueFd stream = bindAbstract(SOCK_STREAM, name + "s");
  UniqueFd datagram = bindAbstract(SOCK_DGRAM, name + "d");
  UniqueFd packet = bindAbstract(SOCK_SEQPACKET, name + "p");
  Upstream upstream;

  /// What the host's network gives to whoever shares it.
  [[nodiscard]] std::vector<std::string> shared() const {
    return {std::string("tcp=tcp,") + kLoopback + "," + tcp.port,
            std::string("tcp6=tcp,") + kLoopback6 + "," + tcp6.port,
            std::string("tcp-interface=tcp,") + kHostAddress + "," + tcpInterface.port,
            std::string("tcp6-interface=tcp,") + kHostAddress6 + "," + tcpInterface6.port,
            std::string("tcp-upstream=tcp,") + kLoopback + "," + std::to_string(upstream.port()),
            std::string("udp=udp,") + kLoopback + "," + udp.port(),
            std::string("udp6=udp,") + kLoopback6 + "," + udp6.port(),
            std::string("udp-interface=udp,") + kHostAddress + "," + udpInterface.port(),
            std::string("dns=dns,") + kNameServer + ",53",
            "abstract-stream=abstract,stream," + name + "s",
            "abstract-dgram=abstract,dgram," + name + "d",
            "abstract-seqpacket=abstract,seqpacket," + name + "p",
            "lists-tcp=lists-tcp," + tcp.port,
            "lists-unix=lists-unix," + name,
            "diag-tcp=diag-tcp," + tcp.port};
  }
};

const std::set<std::string> kShared{"tcp",
                                    "tcp6",
                                    "tcp-interface",
                                    "tcp6-interface",
                                    "tcp-upstream",
                                    "udp",
                                    "udp6",
                                    "udp-interface",
                                    "dns",
                                    "getent",
                                    "lists-tcp",
                                    "lists-unix",
                                    "diag-tcp",
                                    "abstract-dgram",
                                    "abstract-stream",
                                    "abstract-seqpacket"};

/// What needs rights in the network, or another network.
std::vector<std::string> privileged() {
  return {"ping=ping,127.0.0.1",
          "raw=raw,127.0.0.1",
          "packet=packet",
          "packet-dgram=packet-dgram",
          "link-up=link-up,1",
          "veth-add=link-add,veth",
          "dummy-add=link-add,dummy",
          "bridge-add=link-add,bridge",
          "address-add=address-add,192.0.2.78",
          "route-add=route-add,198.51.100.7",
          "setns-pid1=setns,/proc/1/ns/net",
          "setns-self=setns,/proc/self/ns/net",
          "unshare-net=unshare-net",
          "unshare-user=unshare-user"};
}

std::vector<std::string> together(std::string program, std::vector<std::string> first,
                                  const std::vector<std::string>& second) {
  first.insert(first.begin(), std::move(program));
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Json policyOf(const std::string& name, const Host& host) {
  if (name == "allow-list") {
    return {{"allow", {{{"origin", host.upstream.origin()}}}}};
  }
  return name;
}

/// All attempts of a guest, as lines; among them what the gateway answers about the host's upstream.
std::string attemptAll(const Footing& footing, const std::string& policy) {
  const Host host;
  Sidecar sidecar(optionsFor(footing));
  Session session(sidecar, policyOf(policy, host));
  const auto tries = session.run(together(session.install("ways_out"), host.shared(), privileged()),
                                 {{"timeoutMs", 120000}}, Milliseconds(120000));
  const auto named = session.sh("getent hosts asked.stitchkit.test");
  const auto interfaces = session.sh("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' | sort | tr '\\n' ' '");
  const auto gateway = session.run({session.install("gateway_peer"), "get", host.upstream.host(), "/", "1"});
  return tries.out + "gateway-" + gateway.out + "getent=" + (named.out.rfind(kHostAddress, 0) == 0 ? "ok" : "none") +
         "\ninterfaces=" + interfaces.out + "\n";
}

void checkDenied(const Footing& footing, const std::string& policy) {
  const std::string output = inOwnNetwork([&] { return attemptAll(footing, policy); });
  CAPTURE(footing, policy, output);
  const auto tries = attemptsOf(output);
  REQUIRE(tries.size() == kShared.size() + privileged().size() + 2);
  CHECK(succeeded(tries).empty());
  CHECK(tries.at("interfaces") == "lo ");
  CHECK(tries.at("gateway-status") == (policy == "allow-list" ? "200" : "403"));
}

TEST_CASE("no way leads out of a guest under deny-all") {
  checkDenied(GENERATE(from_range(footings())), "deny-all");
}

TEST_CASE("the gateway is the only way out of a guest under an allow-list, also to what is allowed") {
  checkDenied(GENERATE(from_range(footings())), "allow-list");
}

TEST_CASE("control: under allow-all the guest reaches all of the host's, and has no more rights in its network") {
  const Footing footing = GENERATE(from_range(footings()));
  CAPTURE(footing);
  const std::string output = inOwnNetwork([&] { return attemptAll(footing, "allow-all"); });
  CAPTURE(output);
  std::set<std::string> reached = kShared;
  reached.erase("diag-tcp");  // of netlink the filter leaves no more than a guest needs
  CHECK(succeeded(attemptsOf(output)) == reached);
}

TEST_CASE("control: outside of a sandbox, sock_diag shows who listens") {
  const std::string output = inOwnNetwork([] {
    const Host host;
    return runProgram({hostProgram("ways_out"), "diag-tcp=diag-tcp," + host.tcp.port}).output;
  });
  CHECK(output == "diag-tcp=ok\n");
}

TEST_CASE("control: whoever has rights in a network does all the rest") {
  const std::string output =
      withNetworkRights([] { return runProgram(together(hostProgram("ways_out"), privileged(), {})).output; });
  CAPTURE(output);
  auto names = succeeded(attemptsOf(output));
  const auto joined = weakSandbox(
      {"--uid", "0", "--gid", "0", "--cap-add", "ALL", "--ro-bind", hostProgram("ways_out"), "/tmp/ways_out"},
      {"/tmp/ways_out", "setns-pid1=setns,/proc/1/ns/net"});
  CAPTURE(joined.output);
  names.merge(succeeded(attemptsOf(joined.output)));
  for (const char* name : {"raw", "packet", "packet-dgram", "link-up", "veth-add", "address-add", "route-add",
                           "setns-self", "unshare-net", "unshare-user"}) {
    CAPTURE(name);
    CHECK(names.count(name) == 1);
  }
}

}  // namespace
}  // namespace stitchkit::testing
