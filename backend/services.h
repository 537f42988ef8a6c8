// What every session of one backend works with.
#pragma once

#include <memory>
#include <string>

#include "backend/cgroups/cgroup_tree.h"
#include "backend/launch/launch_profile.h"
#include "backend/launch/support_files.h"
#include "backend/launch/warden.h"
#include "backend/launch/warm_launches.h"
#include "backend/requests.h"
#include "backend/stats.h"
#include "backend/storage/session_store.h"
#include "codingtools/durability.h"
#include "gateway/gateway.h"
#include "rpc/asio_loop.h"
#include "rpc/workers.h"

namespace stitchkit {

/// As the command line and `initialize` settled it.
struct BackendConfig {
  std::string stateDirectory;
  std::string name = "bubblewrap";
  std::string bubblewrap = "/usr/bin/bwrap";
  int maxConcurrentCommands = 8;
  int warmLaunches = 0;            ///< --warm: launches that wait for commands, a handle
  std::shared_ptr<Warden> warden;  ///< ends guests when the sidecar was killed
  std::shared_ptr<const CgroupDelegation> cgroups = std::make_shared<CgroupDelegation>();
  GatewayOptions gateway;
  Durability durability;   ///< --durability
  bool staysRoot = false;  ///< --allow-root: what root could write below /proc is covered, and the grade says so
  std::uint64_t softOpenFiles = 0;  ///< soft limit of open files in guests; 0: the sidecar's own
};

/// Made once, when the first session or template is asked for. Thread-safe; outlives every handle.
struct BackendServices {
  BackendServices(AsioLoop& ownLoop, Workers& ownWorkers, BackendConfig settled, CgroupTree ownCgroups);

  AsioLoop& loop;
  Workers& workers;
  const BackendConfig config;
  const CgroupTree cgroups;
  const Layout layout;
  const TemplateStore templates;
  const SessionStore sessions;
  const SystemLayout system;
  const std::string supportDirectory;
  SupportFiles support;
  GatewayThreads gateway;
  WarmLaunches warm;
  BackendCounts counts;  ///< loop thread only
};

/// A listening socket for the session's gateway, where its guests will find it. Blocks on the disk.
Result<UniqueFd> openGatewaySocket(const StoredSession& session);

/// The launch profile of a session. Makes the support files when they are not there; blocks on the disk.
Result<std::shared_ptr<const PreparedProfile>> makeProfile(BackendServices& services, const StoredSession& session,
                                                           const NetworkPolicy& policy, const Resources& resources,
                                                           std::shared_ptr<SessionCgroup> cgroup);

/// SANDBOX_UNAVAILABLE with `details.resource` for the first ceiling that cannot be enforced here.
Result<void> checkEnforceable(const BackendServices& services, const SessionLimits& limits);

/// The control groups of a session; nullptr when nothing is limited by them. Blocks.
Result<std::shared_ptr<SessionCgroup>> makeCgroup(BackendServices& services, const StoredSession& session,
                                                  SessionLimits limits);

/// What is enforced under a policy, once a launch has shown that isolation works.
Grade gradeOf(const BackendServices& services, const NetworkPolicy& policy);

}  // namespace stitchkit
