// A network of the test's own, in which it plays the host: nothing that a guest sends there, under whatever policy, can
// come any further.
#pragma once

#include "rpc/base/unique_fd.h"

#include <functional>
#include <string>
#include <thread>

namespace stitchkit::testing {

/// Addresses of the host that are not loopback ones; of the blocks that are for documentation.
inline constexpr const char* kHostAddress = "192.0.2.77";
inline constexpr const char* kHostAddress6 = "2001:db8::77";
/// The name server in its resolv.conf.
inline constexpr const char* kNameServer = "127.0.0.1";

/// A socket, and its port as text.
struct Bound {
  UniqueFd socket;
  std::string port;
};
/// A TCP socket that listens at an address, of IPv4 or IPv6.
Bound listenAt(const std::string& host);

/// Answers each datagram with itself; one that asks for the address of a name with kHostAddress, unless the name begins
/// with `never`. A thread of its own, until the end.
class Answerer {
 public:
  explicit Answerer(const std::string& host, int port = 0);
  ~Answerer();
  Answerer(const Answerer&) = delete;
  Answerer& operator=(const Answerer&) = delete;

  [[nodiscard]] const std::string& port() const { return bound_.port; }

 private:
  void serve();

  Bound bound_;
  std::thread thread_;
};

/// Runs `work` in a child process (forked.h) in new network and mount namespaces: the loopback interface is up and has
/// the addresses above, /etc/resolv.conf names kNameServer alone. The user stays who it is; an ordinary one needs a
/// user namespace for it, in which it still is itself. What it threw comes back as an exception.
std::string inOwnNetwork(const std::function<std::string()>& work);

/// Runs `work` in a child process as the root of a new user namespace, with a network of which it has all rights and a
/// loopback interface that is up.
std::string withNetworkRights(const std::function<std::string()>& work);

}  // namespace stitchkit::testing
