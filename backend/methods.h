// The methods of PROTOCOL.md, sections 3 to 5, by name.
#pragma once

#include <functional>

#include "backend/backend.h"
#include "rpc/method_table.h"

namespace stitchkit {

class Peer;

struct MethodSettings {
  std::size_t maxMessageBytes;
  /// Where `process.output` and `process.exit` go; asked at the time.
  std::function<Peer*()> peer;
  /// Adds to `backend.stats` what the backend does not know: requests, log, and queues beside its own. May be empty.
  std::function<void(SidecarStats&)> addStats = {};
};

/// `gateway.error` to the host, and a line with the private detail to the log.
void tellGatewayFailure(Peer& peer, const std::string& handle, const GatewayFailure& failure);

/// Both arguments must outlive the table.
void addBackendMethods(MethodTable& table, Backend& backend, MethodSettings settings);

}  // namespace stitchkit
