// Names to addresses, without waiting longer than the caller has time.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <functional>
#include <string>
#include <vector>

#include "gateway/origin.h"

namespace stitchkit {

using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;

/// A host's addresses in the order in which to try them; may block for as long as it likes. kInternal when there is
/// none.
using LookupFunction = std::function<Result<Endpoints>(const std::string& host, std::uint16_t port)>;

/// getaddrinfo: what the host's own configuration says (nsswitch, hosts file, DNS).
Result<Endpoints> systemLookup(const std::string& host, std::uint16_t port);

/// No host on the public Internet has it: loopback, private, shared, link-local, multicast, documentation, reserved,
/// and IPv6 that stands for such an IPv4 address (IANA's special-purpose registries).
bool isPrivateAddress(const boost::asio::ip::address& address);

/// The addresses to dial for an origin. A name other than localhost must not lead to a private address, lest whoever
/// answers for the name opens the host's own network to a guest: kNetworkDenied, when `privateNames` does not allow it.
///
/// A literal is answered before the return. A name is looked up on a thread of its own, which is left to itself when
/// nobody waits for it any more; `done` is then called on the context's thread, or not at all when the context has
/// ended.
void addressesOf(const Origin& origin, const LookupFunction& lookup, bool privateNames,
                 boost::asio::io_context& context, std::function<void(Result<Endpoints>)> done);

}  // namespace stitchkit
