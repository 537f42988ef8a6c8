// A handle: the live, exclusive attachment to one session. Admission of commands, files, policy, and the barrier of
// stop: no guest and no file operation is left when it answers, and the lease is free.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/launch/guest.h"
#include "backend/services.h"
#include "backend/session_files.h"
#include "backend/session_tools.h"
#include "backend/stats.h"

namespace stitchkit {

/// What a handle is made of, when its isolation has been proven.
struct HandleParts {
  std::shared_ptr<StoredSession> session;
  std::shared_ptr<const PreparedProfile> profile;
  NetworkPolicy policy;
  Resources resources;
  std::shared_ptr<SessionCgroup> cgroup;  ///< nullptr: nothing is limited by one
  UniqueFd gatewaySocket;
};

/// Loop-thread only; callbacks are called on the loop.
class SessionHandle : public std::enable_shared_from_this<SessionHandle> {
 public:
  using Done = std::function<void(Result<void>)>;

  SessionHandle(BackendServices& services, std::string id, HandleParts parts, Gateway::OnFailure onGatewayFailure);

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] Grade grade() const { return gradeOf(services_, policy_); }
  /// SANDBOX_STOPPED after a delete; a stopped session can be attached to again.
  [[nodiscard]] Result<SessionState> captureState() const;
  /// SANDBOX_STOPPED unless it is live.
  [[nodiscard]] Result<void> usable() const;
  /// For files; the handle is usable.
  [[nodiscard]] SessionFiles& files() { return *files_; }
  /// For the coding tools; it lives on after a stop and then says so.
  [[nodiscard]] std::shared_ptr<ToolSession> tools();

  [[nodiscard]] const std::string& session() const { return state_.sessionId; }
  /// Not stopped yet.
  [[nodiscard]] bool live() const { return stage_ == Stage::kLive || stage_ == Stage::kStopping; }
  [[nodiscard]] std::size_t liveCommands() const { return live_.size(); }
  /// For `backend.stats`; reads a few files of the kernel's where resources are limited.
  [[nodiscard]] HandleStats stats() const;
  [[nodiscard]] const GatewayWatch& gatewayWatch() const { return *gatewayWatch_; }
  [[nodiscard]] const HighWater& mostLive() const { return mostLive_; }

  /// Starts a command. SANDBOX_STOPPED, or SANDBOX_BUSY at the limit of live commands or while the policy changes.
  /// `completion` is called when nothing of the command is left.
  Result<std::shared_ptr<Guest>> start(CommandKind kind, Command command, std::string standardInput,
                                       GuestOptions options, Guest::Completion completion);

  /// Launches a guest that does nothing but show that it is where it should be.
  void probe(std::function<void(Grade)> done);
  /// SANDBOX_BUSY with a live command. The old policy stays when the new one cannot be shown to work.
  void setNetworkPolicy(NetworkPolicy policy, std::function<void(Result<Grade>)> done);

  /// Idempotent; any number may wait for one stop.
  void stop(Done done);
  /// Stops, then removes the session's files. SANDBOX_BUSY when another handle owns the session by now.
  void remove(Done done);

  /// The host does not read: no output is read from guests meanwhile, and no request of theirs goes to an upstream.
  void setOutputPaused(bool paused);

 private:
  enum class Stage : std::uint8_t { kLive, kStopping, kStopped, kDeleted };

  [[nodiscard]] bool toolsActive() const { return tools_ && tools_->active() != 0; }
  void setProvenPolicy(std::shared_ptr<const PreparedProfile> profile, const NetworkPolicy& policy,
                       std::function<void(Result<Grade>)> finish);
  void beginStop();
  void tellCommand(const CommandWatch& watch);
  void tellEnd(bool wasStopped);
  void finishStopWhenQuiet();
  void onReleased(Result<void> removed, bool wasRemoval);
  void removeStopped();

  BackendServices& services_;
  std::string id_;
  SessionState state_;
  std::shared_ptr<StoredSession> session_;          // until the stop has finished
  std::shared_ptr<const PreparedProfile> profile_;  // until then, as are the next two and files_
  std::shared_ptr<SessionCgroup> cgroup_;
  std::shared_ptr<WarmPool> warm_;
  NetworkPolicy policy_;
  Resources resources_;
  std::shared_ptr<GatewayWatch> gatewayWatch_;
  Gateway gateway_;
  bool gatewayOpen_ = true;
  std::shared_ptr<SessionFiles> files_;
  std::shared_ptr<SessionTools> tools_;  // once somebody asked for it
  std::unordered_map<std::uint64_t, std::shared_ptr<Guest>> live_;
  std::uint64_t nextGuest_ = 0;  // the number of commands so far
  HighWater mostLive_;
  std::size_t probes_ = 0;
  bool policyChanging_ = false;
  bool outputPaused_ = false;
  bool releasing_ = false;
  Stage stage_ = Stage::kLive;
  std::vector<Done> stopWaiters_;
  std::vector<Done> removeWaiters_;
};

/// Proves a profile by a real launch of a guest that opens its workspace. `session` is kept until it is over.
void proveIsolation(BackendServices& services, const PreparedProfile& profile,
                    const std::shared_ptr<StoredSession>& session, std::function<void(Result<void>)> done);

}  // namespace stitchkit
