// A request ends at once, whatever its upstream is at: being looked up, dialled, greeted, sent to, read from.
#include "tests/attacks/gateway_client.h"
#include "tests/attacks/own_network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <cerrno>
#include <system_error>

namespace stitchkit::testing {
namespace {

constexpr Milliseconds kAtOnce(10000);  // a resolver's, a handshake's and a connection's own patience are longer

/// A socket at 127.0.0.1 that does as little as it is told to.
class Sullen {
 public:
  Sullen(int type, int port, int backlog) : socket_(::socket(AF_INET, type | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    const int little = 4096;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    if (::bind(socket_.get(), any, size) != 0 || (type == SOCK_STREAM && ::listen(socket_.get(), backlog) != 0) ||
        ::getsockname(socket_.get(), any, &size) != 0) {
      throw std::system_error(errno, std::generic_category(), "listen");
    }
    port_ = ntohs(address.sin_port);
  }

  /// Connects to itself until nobody else can.
  void fill() {
    for (bool full = false; !full;) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      address.sin_port = htons(static_cast<std::uint16_t>(port_));
      const UniqueFd& one = others_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      ::connect(one.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
      pollfd waiter{one.get(), POLLOUT, 0};
      full = ::poll(&waiter, 1, 300) == 0;
    }
  }
  /// A datagram has come; it is taken.
  [[nodiscard]] bool asked() const {
    pollfd waiter{socket_.get(), POLLIN, 0};
    char byte = 0;
    return ::poll(&waiter, 1, 20000) == 1 && ::recv(socket_.get(), &byte, 1, MSG_TRUNC) > 0;
  }
  /// The first bytes of the first connection, which stays open.
  [[nodiscard]] bool spokenTo() {
    const UniqueFd& one = others_.emplace_back(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    char byte = 0;
    return ::recv(one.get(), &byte, 1, 0) == 1;
  }
  bool sayToLast(std::string_view text) { return sendAll(others_.back().get(), text); }
  /// By somebody else than fill().
  [[nodiscard]] bool beingDialled() const {
    char remote[32];
    std::snprintf(remote, sizeof remote, ":%04X 02", static_cast<unsigned>(port_));  // SYN_SENT
    return eventually([&] {
      const std::string table = readFile("/proc/net/tcp");
      std::size_t dialling = 0;
      for (auto at = table.find(remote); at != std::string::npos; at = table.find(remote, at + 1)) {
        ++dialling;
      }
      return dialling >= 2;  // the last of fill() is one
    });
  }
  [[nodiscard]] int port() const { return port_; }

 private:
  UniqueFd socket_;
  int port_ = 0;
  std::vector<UniqueFd> others_;
};

/// A guest that waits for an upstream, and the event that says that it has come as far as it should.
struct Stage {
  std::string name;
  std::string origin;
  std::vector<std::string> peer;  ///< gateway_peer, from its mode on; the host goes behind that
  std::function<bool()> reached;
};

Json reach(Sidecar& sidecar, Session& session, const Stage& stage, const std::string& program) {
  auto argv = stage.peer;
  argv.insert(argv.begin() + 1, stage.origin.substr(stage.origin.find("//") + 2));
  argv.insert(argv.begin(), program);
  const Json process = sidecar.call("session.spawn", session.commandParams(argv)).at("process");
  if (!stage.reached()) {
    throw std::runtime_error("never came as far as: " + stage.name);
  }
  return process;
}

std::string changeAndStopIn(const Stage& stage) {
  const Json policy{{"allow", {{{"origin", stage.origin}}}}};
  std::string said;
  for (const char* way : {"change", "stop", "end"}) {
    Sidecar sidecar;
    Session session(sidecar, policy);
    const std::string program = session.install("gateway_peer");
    const Json process = reach(sidecar, session, stage, program);
    const auto start = std::chrono::steady_clock::now();
    if (way == std::string("change")) {
      sidecar.call("process.stop", {{"process", process}});
      sidecar.call("session.setNetworkPolicy", {{"handle", session.handle()}, {"network", "deny-all"}});
    } else if (way == std::string("stop")) {
      session.stop();
    } else {
      sidecar.closeInput();
      sidecar.waitForExit();
    }
    const bool inTime = std::chrono::steady_clock::now() - start < kAtOnce;
    said += stage.name + "-" + way + "=" + (inTime ? "ok" : "late") + "\n";
  }
  return said;
}

std::string allStages() {
  Sullen names(SOCK_DGRAM, 53, 0);
  Sullen full(SOCK_STREAM, 0, 0);
  full.fill();
  Sullen silent(SOCK_STREAM, 0, 16);
  const auto localhost = [](int port) { return "//127.0.0.1:" + std::to_string(port); };
  const std::vector<Stage> stages{
      {"looked-up", "http://never.stitchkit.test", {"pending", "1", "/"}, [&] { return names.asked(); }},
      {"dialled", "http:" + localhost(full.port()), {"pending", "1", "/"}, [&] { return full.beingDialled(); }},
      {"greeted", "https:" + localhost(silent.port()), {"pending", "1", "/"}, [&] { return silent.spokenTo(); }},
      {"sent-to",
       "http:" + localhost(silent.port()),
       {"bodies", "1048576", "declared", "1"},
       [&] { return silent.spokenTo(); }},
      {"read-from", "http:" + localhost(silent.port()), {"pending", "1", "/"}, [&] {
         return silent.spokenTo() && silent.sayToLast("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n12345");
       }}};
  std::string said;
  for (const Stage& stage : stages) {
    said += changeAndStopIn(stage);
  }
  return said;
}

TEST_CASE("a change of policy, a stop and the end of the sidecar wait for no upstream, whatever it is at") {
  const std::string said = inOwnNetwork(allStages);
  CAPTURE(said);
  CHECK(succeeded(attemptsOf(said)).size() == 15);
}

// Lookups that were given up go on in the background, and the system's resolver has its own idea of patience.
std::string lookUpInVain() {
  const Answerer names(kNameServer, 53);
  const Upstream upstream([](const UpstreamRequest&, int connection) { return sendAll(connection, response("ok")); },
                          kHostAddress);
  const std::string good = "good.stitchkit.test:" + std::to_string(upstream.port());
  SidecarOptions options;
  options.arguments = {"--private-origins"};
  Sidecar sidecar(std::move(options));
  Session greedy(sidecar, {{"allow", {{{"origin", "http://never.stitchkit.test"}}}}});
  const std::string program = greedy.install("gateway_peer");
  // Each in a session of its own, which has no connection yet.
  const auto ask = [&](const std::string& when) {
    Session other(sidecar, {{"allow", {{{"origin", "http://" + good}}}}});
    return when + "-" + other.run({other.install("gateway_peer"), "get", good, "/", "1"}).out;
  };
  std::string said = ask("before");
  for (int i = 0; i < 100; ++i) {
    Json params = greedy.commandParams({program, "pending", "never.stitchkit.test", "16", "/"});
    params["stream"] = true;
    const Json process = sidecar.call("session.spawn", params).at("process");
    sidecar.outputBytes();
    sidecar.call("process.stop", {{"process", process}});
  }
  said += ask("meanwhile");
  return said;
}

TEST_CASE("a guest whose lookups are never answered does not use up what others look up with") {
  const std::string said = inOwnNetwork(lookUpInVain);
  CHECK(said == "before-status=200\nmeanwhile-status=200\n");
}

}  // namespace
}  // namespace stitchkit::testing
