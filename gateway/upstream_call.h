// One request of a guest on its way through an upstream.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "gateway/forwarding.h"
#include "gateway/redaction.h"
#include "gateway/upstream_pool.h"

namespace stitchkit {

/// Why a request ended with 502, for the host: PROTOCOL.md, 6, gateway.error. No secret, nothing of the guest's.
struct GatewayFailure {
  Error error;
  std::string origin;
};

struct UpstreamCall {
  GuestRequest request;
  Admission admission;  ///< its rule belongs to `policy`
  NetworkPolicy policy;
  std::shared_ptr<const Redactor> redactor;
  std::shared_ptr<const CancelSignal> signal;
  GatewayClock::time_point deadline;
  bool keepAlive = false;  ///< what the guest is told about its own connection
};

struct CallResult {
  std::string response;  ///< all bytes for the guest
  std::optional<GatewayFailure> failure;
};

/// Blocks until the response is whole or has failed. An idempotent request on a kept connection that turns out to be
/// closed is sent once more on a fresh one (RFC 9110, 9.2.2).
CallResult runUpstreamCall(const UpstreamCall& call, UpstreamPool& pool, const UpstreamSettings& settings);

}  // namespace stitchkit
