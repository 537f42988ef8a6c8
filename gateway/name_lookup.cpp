#include "gateway/name_lookup.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <array>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "rpc/base/unique_fd.h"

namespace stitchkit {
namespace {

namespace ip = boost::asio::ip;

// Lookups whose callers could not wait for them: beyond this many no further one begins.
constexpr int kLookupsAtOnce = 256;
std::atomic<int> lookupsNow{0};

bool isPrivateV4(const ip::address_v4& address) {
  static const std::array<ip::network_v4, 16> kPrivate{
      ip::make_network_v4("0.0.0.0/8"),      ip::make_network_v4("10.0.0.0/8"),     ip::make_network_v4("100.64.0.0/10"),
      ip::make_network_v4("127.0.0.0/8"),    ip::make_network_v4("169.254.0.0/16"), ip::make_network_v4("172.16.0.0/12"),
      ip::make_network_v4("192.0.0.0/24"),   ip::make_network_v4("192.0.2.0/24"),   ip::make_network_v4("192.31.196.0/24"),
      ip::make_network_v4("192.88.99.0/24"), ip::make_network_v4("192.168.0.0/16"), ip::make_network_v4("198.18.0.0/15"),
      ip::make_network_v4("198.51.100.0/24"), ip::make_network_v4("203.0.113.0/24"), ip::make_network_v4("224.0.0.0/4"),
      ip::make_network_v4("240.0.0.0/4")};
  return std::any_of(kPrivate.begin(), kPrivate.end(), [&](const ip::network_v4& network) {
    return (address.to_uint() & network.netmask().to_uint()) == network.network().to_uint();
  });
}

bool inNetwork(const ip::address_v6& address, const ip::network_v6& network) {
  return ip::network_v6(address, network.prefix_length()).canonical().address() == network.address();
}

ip::address_v4 v4Inside(const ip::address_v6& address, std::size_t at) {
  const auto bytes = address.to_bytes();
  return ip::address_v4({bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]});
}

bool isPrivateV6(const ip::address_v6& address) {
  // Only 2000::/3 is given out; of the rest nothing leads to the Internet but the IPv4 inside NAT64 (RFC 6052).
  if (inNetwork(address, ip::make_network_v6("64:ff9b::/96"))) {
    return isPrivateV4(v4Inside(address, 12));
  }
  if (!inNetwork(address, ip::make_network_v6("2000::/3"))) {
    return true;
  }
  if (inNetwork(address, ip::make_network_v6("2002::/16"))) {
    return isPrivateV4(v4Inside(address, 2));
  }
  return inNetwork(address, ip::make_network_v6("2001::/23")) || inNetwork(address, ip::make_network_v6("2001:db8::/32")) ||
         inNetwork(address, ip::make_network_v6("3fff::/20"));
}

// Shared with the thread that looks up, which may end long after its caller.
struct Lookup {
  UniqueFd done;
  std::mutex mutex;
  Result<std::vector<SocketAddress>> result = Error(ErrorKind::kInternal, "The name was not looked up");
};

Result<std::vector<SocketAddress>> lookUpAside(const Origin& origin, const LookupFunction& lookup,
                                               const CancelSignal& signal, GatewayClock::time_point deadline) {
  auto shared = std::make_shared<Lookup>();
  shared->done = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!shared->done) {
    return internalError("The upstream's name could not be looked up", "eventfd", errno);
  }
  if (lookupsNow.fetch_add(1) >= kLookupsAtOnce) {
    lookupsNow.fetch_sub(1);
    return Error(ErrorKind::kInternal, "Too many names are being looked up");
  }
  std::thread([shared, lookup, host = origin.host, port = origin.port] {
    Result<std::vector<SocketAddress>> found = lookup(host, port);
    lookupsNow.fetch_sub(1);
    const std::lock_guard lock(shared->mutex);
    shared->result = std::move(found);
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(shared->done.get(), &one, sizeof one);
  }).detach();
  if (Result<void> waited = signal.wait(shared->done.get(), POLLIN, deadline); !waited) {
    return std::move(waited).error();
  }
  const std::lock_guard lock(shared->mutex);
  return std::move(shared->result);
}

bool namesLoopback(std::string_view host) {
  return host == "localhost" || host.ends_with(".localhost");
}

}  // namespace

Result<std::vector<SocketAddress>> systemLookup(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (code != 0) {
    return Error(ErrorKind::kInternal, "The upstream's name could not be resolved").withPrivate(::gai_strerror(code));
  }
  std::vector<SocketAddress> addresses;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    SocketAddress& address = addresses.emplace_back();
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.length = one->ai_addrlen;
  }
  ::freeaddrinfo(list);
  return addresses;
}

SocketAddress literalAddress(const Origin& origin) {
  SocketAddress address;
  if (origin.host.find(':') != std::string::npos) {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(origin.port);
    ::inet_pton(AF_INET6, origin.host.c_str(), &v6.sin6_addr);
    std::memcpy(&address.storage, &v6, sizeof v6);
    address.length = sizeof v6;
  } else {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(origin.port);
    ::inet_pton(AF_INET, origin.host.c_str(), &v4.sin_addr);
    std::memcpy(&address.storage, &v4, sizeof v4);
    address.length = sizeof v4;
  }
  return address;
}

bool isPrivateAddress(const SocketAddress& address) {
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address.storage, sizeof v4);
    return isPrivateV4(ip::address_v4(ntohl(v4.sin_addr.s_addr)));
  }
  if (address.storage.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address.storage, sizeof v6);
    ip::address_v6::bytes_type bytes{};
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    return isPrivateV6(ip::address_v6(bytes));
  }
  return true;
}

Result<std::vector<SocketAddress>> addressesOf(const Origin& origin, const LookupFunction& lookup, bool privateNames,
                                               const CancelSignal& signal, GatewayClock::time_point deadline) {
  if (origin.isAddress) {
    return std::vector<SocketAddress>{literalAddress(origin)};
  }
  Result<std::vector<SocketAddress>> found = lookUpAside(origin, lookup, signal, deadline);
  if (!found || privateNames || namesLoopback(origin.host)) {
    return found;
  }
  std::erase_if(*found, isPrivateAddress);
  if (found->empty()) {
    return Error(ErrorKind::kNetworkDenied, "The upstream's name leads to a private address")
        .withHint("Name the address itself in the origin, or start the sidecar with --private-origins.");
  }
  return found;
}

}  // namespace stitchkit
