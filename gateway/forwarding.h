// What passes between guest and upstream, in both directions, as pure functions (PROTOCOL.md, 6).
#pragma once

#include <string>
#include <variant>

#include "gateway/request_fence.h"
#include "gateway/request_writer.h"
#include "gateway/response_fence.h"

namespace stitchkit {

/// An answer of the gateway's own.
struct Refusal {
  unsigned status;
  std::string body;
  std::string reason;  ///< for the host as gateway.error, SANDBOX_NETWORK_DENIED; "" when it is not told
  std::string origin;  ///< with a reason
};

Refusal deniedRefusal();
Refusal busyRefusal();
/// 502, whatever the reason: a guest learns nothing of it.
Refusal upstreamRefusal(std::string reason = {}, std::string origin = {});
/// 400, 408, 413, 417 or 431, each in its standard words.
Refusal framingRefusal(unsigned status);

/// Where a request may go.
struct Admission {
  const Rule* rule;    ///< of the policy that was asked
  std::string target;  ///< what was checked, and is to be sent
};

/// CONNECT and PRI: what follows on the connection would be something else than HTTP/1.1.
bool isTunnelMethod(std::string_view method) noexcept;

/// Judges a request whose header is there.
std::variant<Admission, Refusal> admit(const GuestRequest& request, const NetworkPolicy& policy);

/// The upstream's request: method and target, the guest's fields that may travel and that its `Connection` does not
/// name, and the injected ones instead of any that it sent. The body is the guest's; `request` must outlive it.
UpstreamRequest upstreamRequest(const GuestRequest& request, const Admission& admission);

/// The guest's response as bytes.
/// @param toHead leaves the body out, and the upstream's length in.
std::string guestResponse(const UpstreamResponse& response, const Rule& rule, bool toHead, bool keepAlive);
std::string guestResponse(const Refusal& refusal, bool toHead, bool keepAlive);

}  // namespace stitchkit
