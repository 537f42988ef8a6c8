#include "gateway/name_lookup.h"

#include <netdb.h>
#include <sys/socket.h>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace stitchkit {
namespace {

namespace ip = boost::asio::ip;

// Lookups whose callers could not wait for them: beyond this many no further one begins.
constexpr int kLookupsAtOnce = 1024;
std::atomic<int> lookupsNow{0};

bool isPrivateV4(const ip::address_v4& address) {
  static const std::array<ip::network_v4, 16> kPrivate{
      ip::make_network_v4("0.0.0.0/8"),       ip::make_network_v4("10.0.0.0/8"),
      ip::make_network_v4("100.64.0.0/10"),   ip::make_network_v4("127.0.0.0/8"),
      ip::make_network_v4("169.254.0.0/16"),  ip::make_network_v4("172.16.0.0/12"),
      ip::make_network_v4("192.0.0.0/24"),    ip::make_network_v4("192.0.2.0/24"),
      ip::make_network_v4("192.31.196.0/24"), ip::make_network_v4("192.88.99.0/24"),
      ip::make_network_v4("192.168.0.0/16"),  ip::make_network_v4("198.18.0.0/15"),
      ip::make_network_v4("198.51.100.0/24"), ip::make_network_v4("203.0.113.0/24"),
      ip::make_network_v4("224.0.0.0/4"),     ip::make_network_v4("240.0.0.0/4")};
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
  return inNetwork(address, ip::make_network_v6("2001::/23")) ||
         inNetwork(address, ip::make_network_v6("2001:db8::/32")) ||
         inNetwork(address, ip::make_network_v6("3fff::/20"));
}

Result<Endpoints> publicOnly(Endpoints found) {
  std::erase_if(found, [](const ip::tcp::endpoint& endpoint) { return isPrivateAddress(endpoint.address()); });
  if (found.empty()) {
    return Error(ErrorKind::kNetworkDenied, "The upstream's name leads to a private address")
        .withHint("Name the address itself in the origin, or start the sidecar with --private-origins");
  }
  return found;
}

// The way back from a lookup's thread to a context that may end before it.
class WayBack {
 public:
  explicit WayBack(boost::asio::io_context& context) : context_(&context) {}

  void close() {
    const std::lock_guard lock(mutex_);
    context_ = nullptr;
  }
  void post(std::function<void()> answer) {
    const std::lock_guard lock(mutex_);
    if (context_ != nullptr) {
      boost::asio::post(*context_, std::move(answer));
    }
  }

 private:
  std::mutex mutex_;
  boost::asio::io_context* context_;
};

// Tells the way back when its context ends.
class WayBackService : public boost::asio::io_context::service {
 public:
  using key_type = WayBackService;
  static inline boost::asio::io_context::id id;  // NOLINT(cert-err58-cpp): its constructor does nothing

  explicit WayBackService(boost::asio::io_context& context)
      : service(context), wayBack_(std::make_shared<WayBack>(context)) {}
  [[nodiscard]] const std::shared_ptr<WayBack>& wayBack() const { return wayBack_; }

 private:
  void shutdown() override { wayBack_->close(); }

  std::shared_ptr<WayBack> wayBack_;
};

bool namesLoopback(std::string_view host) {
  return host == "localhost" || host.ends_with(".localhost");
}

}  // namespace

Result<Endpoints> systemLookup(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (code != 0) {
    return Error(ErrorKind::kInternal, "The upstream's name could not be resolved").withPrivate(::gai_strerror(code));
  }
  Endpoints found;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    ip::tcp::endpoint endpoint;
    if (one->ai_addrlen <= endpoint.capacity()) {
      std::memcpy(endpoint.data(), one->ai_addr, one->ai_addrlen);
      endpoint.resize(one->ai_addrlen);
      found.push_back(endpoint);
    }
  }
  ::freeaddrinfo(list);
  return found;
}

bool isPrivateAddress(const ip::address& address) {
  return address.is_v4() ? isPrivateV4(address.to_v4()) : isPrivateV6(address.to_v6());
}

void addressesOf(const Origin& origin, const LookupFunction& lookup, bool privateNames,
                 boost::asio::io_context& context, std::function<void(Result<Endpoints>)> done) {
  if (origin.isAddress) {
    done(Endpoints{{ip::make_address(origin.host), origin.port}});
    return;
  }
  if (lookupsNow.fetch_add(1) >= kLookupsAtOnce) {
    --lookupsNow;
    done(Error(ErrorKind::kInternal, "Too many names are being looked up"));
    return;
  }
  const bool anyAddress = privateNames || namesLoopback(origin.host);
  const auto answer = std::make_shared<std::function<void(Result<Endpoints>)>>(std::move(done));
  // The process ends without waiting for such threads.
  auto look = [lookup, host = origin.host, port = origin.port, anyAddress, answer,
               wayBack = boost::asio::use_service<WayBackService>(context).wayBack()] {
    Result<Endpoints> found = lookup(host, port);
    --lookupsNow;
    if (found && !anyAddress) {
      found = publicOnly(std::move(*found));
    }
    wayBack->post([answer, found = std::move(found)]() mutable { (*answer)(std::move(found)); });
  };
  try {
    std::thread(std::move(look)).detach();
  } catch (const std::system_error&) {
    --lookupsNow;
    (*answer)(Error(ErrorKind::kInternal, "The upstream's name could not be looked up"));
  }
}

}  // namespace stitchkit
