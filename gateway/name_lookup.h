// Names to addresses, without waiting longer than the caller has time.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>
#include <string>
#include <vector>

#include "gateway/cancel_signal.h"
#include "gateway/origin.h"

namespace stitchkit {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// A host's addresses in the order in which to try them; may block for as long as it likes. kInternal when there is none.
using LookupFunction = std::function<Result<std::vector<SocketAddress>>(const std::string& host, std::uint16_t port)>;

/// getaddrinfo: what the host's own configuration says (nsswitch, hosts file, DNS).
Result<std::vector<SocketAddress>> systemLookup(const std::string& host, std::uint16_t port);

/// The address of a literal.
SocketAddress literalAddress(const Origin& origin);

/// No host on the public Internet has it: loopback, private, shared, link-local, multicast, documentation, reserved, and
/// IPv6 that stands for such an IPv4 address (IANA's special-purpose registries).
bool isPrivateAddress(const SocketAddress& address);

/// The addresses to dial for an origin. A name other than localhost must not lead to a private address, lest whoever
/// answers for the name opens the host's own network to a guest: kNetworkDenied, when `privateNames` does not allow it.
/// Looks up on a thread of its own, which is left to itself when the caller cannot wait any longer.
Result<std::vector<SocketAddress>> addressesOf(const Origin& origin, const LookupFunction& lookup, bool privateNames,
                                               const CancelSignal& signal, GatewayClock::time_point deadline);

}  // namespace stitchkit
