// The backend: templates, and handles by their names h1, h2, ... (PROTOCOL.md, 3 and 4).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/process_table.h"
#include "backend/services.h"
#include "backend/session_handle.h"
#include "backend/stats.h"
#include "rpc/cancellation.h"

namespace stitchkit {

/// Loop-thread only; callbacks are called on the loop.
class Backend {
 public:
  /// What main.cpp lends.
  struct Hooks {
    /// Makes a state directory that `initialize` names usable; for a sidecar that has given root up.
    std::function<Result<void>(const std::string&)> adoptStateDirectory;
    /// The configuration is final: whatever still holds privileges ends now, and the warden of the guests begins, which
    /// removes these control groups in the end. No thread exists yet.
    std::function<Result<std::shared_ptr<Warden>>(std::vector<std::string> cgroups)> beforeFirstUse;
    /// A guest's request failed at its upstream.
    std::function<void(const std::string& handle, const GatewayFailure&)> gatewayFailed;
  };

  Backend(AsioLoop& loop, Workers& workers, BackendConfig config, Hooks hooks);

  /// `initialize`. INVALID_REQUEST when it comes twice or after the backend was used.
  Result<BackendConfig> initialize(const InitializeParams& params);

  void prewarm(TemplateParams params, const std::shared_ptr<Cancellation>& cancellation,
               std::function<void(Result<PrewarmResult>)> done);
  void create(CreateParams params, const std::shared_ptr<Cancellation>& cancellation,
              std::function<void(Result<CreateResult>)> done);

  /// Adds what it knows. Makes nothing: before the first use there is little to tell.
  void addStats(SidecarStats& stats) const;

  /// NOT_FOUND for a name that was never given.
  Result<std::shared_ptr<SessionHandle>> handle(std::string_view id);
  [[nodiscard]] ProcessTable& processes() { return processes_; }

  /// Stops every handle, and every one that is being created when it comes about. No method is called after it.
  void stopAll(std::function<void()> done);
  /// SANDBOX_STOPPED after stopAll. Asked for all methods in one place, the table's gate.
  [[nodiscard]] Result<void> open() const;

  /// Back-pressure to every guest.
  void setOutputPaused(bool paused);

 private:
  struct Creation;

  Result<BackendServices*> use();
  void stageSession(const std::shared_ptr<Creation>& creation);
  void proveSession(const std::shared_ptr<Creation>& creation);
  void publishSession(const std::shared_ptr<Creation>& creation);
  void failCreation(const std::shared_ptr<Creation>& creation, Error error);
  void tellCreated(const Creation& creation, const SessionHandle& handle);
  void creationOver();
  void stopHandles(std::function<void()> done);

  AsioLoop& loop_;
  Workers& workers_;
  BackendConfig config_;
  Hooks hooks_;
  bool initialized_ = false;
  std::unique_ptr<BackendServices> services_;  // from the first use on
  std::map<std::string, std::shared_ptr<SessionHandle>, std::less<>> handles_;
  ProcessTable processes_;
  std::size_t lastHandle_ = 0;
  std::size_t creations_ = 0;
  bool outputPaused_ = false;
  bool ended_ = false;
  std::function<void()> afterCreations_;
};

}  // namespace stitchkit
