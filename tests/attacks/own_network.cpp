#include "tests/attacks/own_network.h"

#include "tests/support/forked.h"
#include "tests/support/processes.h"
#include "tests/support/scratch.h"

#include <arpa/inet.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>

namespace stitchkit::testing {
namespace {

void orThrow(bool done, const char* what) {
  if (!done) {
    throw std::system_error(errno, std::generic_category(), what);
  }
}

// A new user namespace in which this process's user is `inside`.
void enterUserNamespace(uid_t inside) {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  orThrow(::unshare(CLONE_NEWUSER) == 0, "unshare: user namespace");
  const auto map = [](const char* file, uid_t within, uid_t outside) {
    writeFile(file, std::to_string(within) + " " + std::to_string(outside) + " 1");
  };
  writeFile("/proc/self/setgroups", "deny");
  map("/proc/self/uid_map", inside, user);
  map("/proc/self/gid_map", inside == 0 ? 0 : group, group);
}

void configureLoopback(bool withAddresses) {
  const UniqueFd control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  orThrow(::ioctl(control.get(), SIOCSIFFLAGS, &request) == 0, "loopback interface up");
  if (!withAddresses) {
    return;
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, kHostAddress, &address.sin_addr);
  std::strcpy(request.ifr_name, "lo:1");
  std::memcpy(&request.ifr_addr, &address, sizeof address);
  orThrow(::ioctl(control.get(), SIOCSIFADDR, &request) == 0, "IPv4 address of the host's");
  const UniqueFd control6(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  in6_ifreq request6{};
  ::inet_pton(AF_INET6, kHostAddress6, &request6.ifr6_addr);
  request6.ifr6_prefixlen = 128;
  request6.ifr6_ifindex = 1;
  orThrow(::ioctl(control6.get(), SIOCSIFADDR, &request6) == 0, "IPv6 address of the host's");
  // The kernel takes its time until one can be bound to.
  sockaddr_in6 own{};
  own.sin6_family = AF_INET6;
  own.sin6_addr = request6.ifr6_addr;
  orThrow(eventually([&] { return ::bind(control6.get(), reinterpret_cast<sockaddr*>(&own), sizeof own) == 0; }),
          "IPv6 address of the host's, in use");
}

void replaceResolvConf(const std::string& with) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath("/etc/resolv.conf", nullptr), &std::free);
  orThrow(real != nullptr, "this test puts another file over /etc/resolv.conf, and there is none");
  orThrow(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "private mounts");
  orThrow(::mount(with.c_str(), real.get(), nullptr, MS_BIND, nullptr) == 0, "another resolv.conf");
}

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

Bound bindTo(const std::string& host, int type, int port) {
  SocketAddress address{};
  const bool v6 = host.find(':') != std::string::npos;
  address.any.sa_family = v6 ? AF_INET6 : AF_INET;
  ::inet_pton(address.any.sa_family, host.c_str(),
              v6 ? static_cast<void*>(&address.v6.sin6_addr) : &address.v4.sin_addr);
  (v6 ? address.v6.sin6_port : address.v4.sin_port) = htons(static_cast<std::uint16_t>(port));
  socklen_t size = v6 ? sizeof address.v6 : sizeof address.v4;
  Bound bound{UniqueFd(::socket(address.any.sa_family, type | SOCK_CLOEXEC, 0)), ""};
  orThrow(::bind(bound.socket.get(), &address.any, size) == 0, host.c_str());
  orThrow(::getsockname(bound.socket.get(), &address.any, &size) == 0, "getsockname");
  bound.port = std::to_string(ntohs(v6 ? address.v6.sin6_port : address.v4.sin_port));
  return bound;
}

// "" for none.
std::string answerTo(std::string datagram) {
  const bool asksName = datagram.size() > 17 && datagram[5] == 1 && (datagram[2] & 0x80) == 0 && datagram[4] == 0;
  if (!asksName) {
    return datagram;
  }
  if (datagram.compare(13, 5, "never") == 0) {
    return "";
  }
  const std::size_t end = datagram.find('\0', 12) + 5;
  const bool asksV4 = datagram[end - 3] == 1;
  datagram.resize(end);  // without additional records
  datagram[2] = static_cast<char>(0x85);
  datagram[3] = 0;
  datagram[7] = asksV4 ? 1 : 0;
  datagram[11] = 0;
  if (asksV4) {
    in_addr address{};
    ::inet_pton(AF_INET, kHostAddress, &address);
    datagram.append("\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04", 12);
    datagram.append(reinterpret_cast<const char*>(&address), sizeof address);
  }
  return datagram;
}

std::string childsWord(const ForkedOutcome& outcome) {
  if (outcome.exitCode != 0 || outcome.text.rfind("threw: ", 0) == 0) {
    throw std::runtime_error("in a network of its own: " + outcome.text);
  }
  return outcome.text;
}

}  // namespace

Bound listenAt(const std::string& host) {
  Bound bound = bindTo(host, SOCK_STREAM, 0);
  orThrow(::listen(bound.socket.get(), 16) == 0, "listen");
  return bound;
}

Answerer::Answerer(const std::string& host, int port) : bound_(bindTo(host, SOCK_DGRAM, port)) {
  thread_ = std::thread([this] { serve(); });
}

Answerer::~Answerer() {
  ::shutdown(bound_.socket.get(), SHUT_RDWR);
  thread_.join();
}

void Answerer::serve() {
  for (;;) {
    SocketAddress from{};
    socklen_t size = sizeof from;
    std::array<char, 512> bytes;
    const ssize_t got = ::recvfrom(bound_.socket.get(), bytes.data(), bytes.size(), 0, &from.any, &size);
    if (got <= 0) {
      return;
    }
    const std::string answer = answerTo(std::string(bytes.data(), static_cast<std::size_t>(got)));
    if (!answer.empty()) {
      ::sendto(bound_.socket.get(), answer.data(), answer.size(), 0, &from.any, size);
    }
  }
}

std::string inOwnNetwork(const std::function<std::string()>& work) {
  const ScratchFolder folder;
  writeFile(folder / "resolv.conf", std::string("nameserver ") + kNameServer + "\noptions timeout:10 attempts:1\n");
  return childsWord(runForked([&] {
    becomeSubreaper();
    if (::geteuid() != 0) {
      enterUserNamespace(::geteuid());
    }
    orThrow(::unshare(CLONE_NEWNET | CLONE_NEWNS) == 0, "unshare: network and mounts");
    replaceResolvConf(folder / "resolv.conf");
    configureLoopback(true);
    return work();
  }));
}

std::string withNetworkRights(const std::function<std::string()>& work) {
  return childsWord(runForked([&] {
    enterUserNamespace(0);
    orThrow(::unshare(CLONE_NEWNET) == 0, "unshare: network");
    configureLoopback(false);
    return work();
  }));
}

}  // namespace stitchkit::testing
