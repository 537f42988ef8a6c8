// What `backend.stats` answers. Every number is since the start of the sidecar, or of this moment.
#pragma once

#include <boost/json/value.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/cgroups/session_cgroup.h"
#include "backend/command_watch.h"
#include "backend/launch/warm_launches.h"
#include "backend/process_use.h"
#include "gateway/gateway_watch.h"
#include "rpc/base/log.h"
#include "rpc/queue_state.h"
#include "rpc/request_log.h"

namespace stitchkit {

/// What handles and commands have been. Loop thread only.
struct BackendCounts {
  CommandCounts commands;
  std::uint64_t created = 0;   ///< handles of new sessions
  std::uint64_t attached = 0;  ///< handles of sessions that were there
  std::uint64_t stopped = 0;   ///< handles that have ended, by a stop or a delete
  std::uint64_t deleted = 0;   ///< sessions
};

/// One handle.
struct HandleStats {
  std::string handle;
  std::string session;
  std::uint64_t liveCommands = 0;
  std::uint64_t startedCommands = 0;
  std::uint64_t waitingLaunches = 0;
  std::uint64_t liveGatewayRequests = 0;
  std::uint64_t endedGatewayRequests = 0;
  CgroupCounts limits;
  std::optional<std::uint64_t> memoryBytes;  ///< of its guests together, if that is limited
};

struct SidecarStats {
  double uptimeMs = 0;
  BackendCounts backend;
  WarmLaunches::Counts warm;
  RequestLog::Counts requests;
  std::uint64_t liveGatewayRequests = 0;
  std::array<std::uint64_t, kGatewayOutcomes> gatewayOutcomes{};
  ProcessUse process;
  LogCounts log;
  std::vector<std::pair<std::string_view, QueueState>> queues;
  std::vector<HandleStats> handles;  ///< live ones, in the order of their names, at most limits::kStatsHandles
  std::uint64_t liveHandles = 0;
};

boost::json::value encode(const SidecarStats& stats);

}  // namespace stitchkit
