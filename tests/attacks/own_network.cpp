#include "tests/attacks/own_network.h"

#include "rpc/base/unique_fd.h"
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

std::string childsWord(const ForkedOutcome& outcome) {
  if (outcome.exitCode != 0 || outcome.text.rfind("threw: ", 0) == 0) {
    throw std::runtime_error("in a network of its own: " + outcome.text);
  }
  return outcome.text;
}

}  // namespace

std::string inOwnNetwork(const std::function<std::string()>& work) {
  const ScratchFolder folder;
  writeFile(folder / "resolv.conf", std::string("nameserver ") + kNameServer + "\noptions timeout:2 attempts:1\n");
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
