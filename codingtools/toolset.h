// One toolset: the tools of one session with the rules that `coding.create` gave them.
#pragma once

#include "codingtools/artifacts.h"
#include "codingtools/file_digests.h"
#include "codingtools/file_locks.h"
#include "codingtools/host_artifacts.h"
#include "codingtools/kept_artifacts.h"
#include "codingtools/run_command.h"
#include "codingtools/slots.h"
#include "codingtools/tool_context.h"
#include "codingtools/tool_definitions.h"
#include "codingtools/tool_guard.h"
#include "codingtools/tool_limits.h"
#include "codingtools/tool_session.h"
#include "rpc/host_requests.h"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>

namespace stitchkit {

/// Where long output of commands is kept.
enum class ArtifactKeeper : std::uint8_t { kNone, kSidecar, kHost };

struct ToolsetRules {
  GuardRules guard;
  ShellRules shell;
  ArtifactKeeper artifacts = ArtifactKeeper::kSidecar;
  std::unordered_set<std::string> excludedDirectories = kExcludedDirectories;
  ToolLimits limits;
};

/// What all toolsets of a sidecar share: thread-safe, and outlives every call.
struct ToolServices {
  const HostRequests& host;
  FileLocks locks;
  FileDigests digests;
  Slots searches;
};

/// Immutable, but for what is thread-safe by itself.
class Toolset {
 public:
  Toolset(ToolServices& services, std::string id, std::shared_ptr<ToolSession> session, ToolsetRules rules);

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] ToolSession& session() const { return *session_; }
  [[nodiscard]] const ToolsetRules& rules() const { return rules_; }
  /// Whether its calls may have to wait for the host.
  [[nodiscard]] bool asksHost() const { return guard_.asksHost() || rules_.artifacts == ArtifactKeeper::kHost; }
  [[nodiscard]] const ToolOffer& offer() const { return offer_; }

  /// Calls `use(context)` with what a call of a tool works with, which lives until then. On the thread of the call.
  template <class Use>
  auto with(const ToolWork& work, std::stop_token stop, Use use) const {
    std::vector<ReplacedFile> none;
    return with(work, none, std::move(stop), std::move(use));
  }
  template <class Use>
  auto with(const ToolWork& work, std::vector<ReplacedFile>& replaced, std::stop_token stop, Use use) const {
    const ToolFiles files(work.workspace(), work.staging());
    const KeptArtifacts kept(work.artifacts());
    const Artifacts* artifacts = rules_.artifacts == ArtifactKeeper::kSidecar ? &kept
                                 : rules_.artifacts == ArtifactKeeper::kHost  ? &hostArtifacts_
                                                                              : static_cast<const Artifacts*>(nullptr);
    return use(ToolContext{work.workspace(), files, guard_, services_.locks, services_.digests, services_.searches,
                           rules_.limits, rules_.excludedDirectories, artifacts, replaced, std::move(stop)});
  }

 private:
  ToolServices& services_;
  std::string id_;
  std::shared_ptr<ToolSession> session_;
  ToolsetRules rules_;
  ToolOffer offer_;  ///< made once: every call asks it
  mutable ToolGuard guard_;
  HostArtifacts hostArtifacts_;
};

}  // namespace stitchkit
