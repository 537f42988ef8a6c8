#include "backend/session_handle.h"

#include <fcntl.h>
#include <boost/asio/post.hpp>

#include <chrono>
#include <utility>

#include "backend/launch/guest_file_operation.h"
#include "backend/launch/sandbox_process.h"
#include "rpc/base/log.h"

namespace stitchkit {
namespace {

constexpr std::chrono::seconds kProbeTimeout{30};

CommandLaunch launchOf(const std::shared_ptr<SandboxProcess>& taken) {
  if (!taken) {
    return CommandLaunch::kCold;
  }
  return taken->ready() ? CommandLaunch::kWarm : CommandLaunch::kWarming;
}

Error stoppedError() {
  return Error(ErrorKind::kStopped, "The handle was stopped")
      .withHint("Attach again with backend.create and the state.");
}

}  // namespace

void proveIsolation(BackendServices& services, const PreparedProfile& profile,
                    const std::shared_ptr<StoredSession>& session, std::function<void(Result<void>)> done) {
  GuestOpenRequest request;
  request.path = "/workspace";
  request.flags = O_RDONLY | O_DIRECTORY;
  openInGuest(
      services.loop.context(), profile, request, kProbeTimeout,
      [session, done = std::move(done)](Result<UniqueFd> directory) {
        if (directory) {
          done({});
        } else if (directory.error().kind == ErrorKind::kUnavailable || directory.error().kind == ErrorKind::kLimit) {
          done(std::move(directory).error());
        } else {
          const Error cause = directory.error();
          done(Error(ErrorKind::kUnavailable, "Isolation could not be established")
                   .withReason("set-up-failed")
                   .withPrivate("probe: " + cause.message + " " + cause.privateDetail));
        }
      });
}

SessionHandle::SessionHandle(BackendServices& services, std::string id, HandleParts parts,
                             Gateway::OnFailure onGatewayFailure)
    : services_(services),
      id_(std::move(id)),
      state_(parts.session->state()),
      session_(std::move(parts.session)),
      profile_(std::move(parts.profile)),
      cgroup_(std::move(parts.cgroup)),
      warm_(services.warm.pool(profile_)),
      policy_(parts.policy),
      resources_(parts.resources),
      gatewayWatch_(std::make_shared<GatewayWatch>(id_, state_.sessionId)),
      gateway_(services.loop, services.gateway, std::move(parts.gatewaySocket), policy_, gatewayWatch_,
               std::move(onGatewayFailure)),
      files_(std::make_shared<SessionFiles>(
          services, session_, [this] { return profile_; }, [this] { finishStopWhenQuiet(); })) {}

Result<SessionState> SessionHandle::captureState() const {
  if (stage_ == Stage::kDeleted) {
    return Error(ErrorKind::kStopped, "The session was deleted");
  }
  return state_;
}

Result<void> SessionHandle::usable() const {
  if (stage_ != Stage::kLive) {
    return stoppedError();
  }
  return {};
}

HandleStats SessionHandle::stats() const {
  return {id_,
          state_.sessionId,
          live_.size(),
          nextGuest_,
          warm_->waiting(),
          gatewayWatch_->requests.now(),
          gatewayWatch_->total(),
          cgroup_ ? cgroup_->counts() : CgroupCounts{},
          cgroup_ ? cgroup_->memoryBytes() : std::nullopt};
}

Result<std::shared_ptr<Guest>> SessionHandle::start(CommandKind kind, Command command, std::string standardInput,
                                                    GuestOptions options, Guest::Completion completion) {
  if (stage_ != Stage::kLive) {
    return stoppedError();
  }
  if (policyChanging_) {
    return Error(ErrorKind::kBusy, "The network policy is being changed");
  }
  if (live_.size() >= static_cast<std::size_t>(services_.config.maxConcurrentCommands)) {
    return Error(ErrorKind::kBusy, "Too many commands are live")
        .withDetail("limit", std::int64_t{services_.config.maxConcurrentCommands})
        .withHint("Wait for one to end, or start the sidecar with a larger --max-concurrent-commands.");
  }
  if (policy_.kind() == NetworkPolicy::Kind::kAllowList) {
    // In front, so that what the command declares wins.
    command.environment.emplace(command.environment.begin(), "STITCHKIT_GATEWAY", kGuestGatewayPath);
  }
  command.maxFileBytes = resources_.maxFileBytes;
  command.maxOpenFiles = resources_.maxOpenFiles;
  if (!services_.cgroups.supports(CgroupController::kProcesses)) {
    command.maxProcesses = limits::kSessionProcesses;
  }
  const std::uint64_t number = ++nextGuest_;
  WarmPool::Taken taken = warm_->take();
  CommandWatch watch(services_.counts.commands, kind, launchOf(taken.sandbox), command);
  options.sandbox = std::move(taken.sandbox);
  auto guest = Guest::start(services_.loop.context(), *profile_, std::move(command), std::move(standardInput),
                            std::move(options),
                            [self = shared_from_this(), number, command = taken.command, watch,
                             completion = std::move(completion)](Result<GuestOutcome> outcome) mutable {
                              self->live_.erase(number);
                              watch.ended(outcome);
                              completion(std::move(outcome));
                              self->warm_->ended(command);
                              self->tellCommand(watch);
                              self->finishStopWhenQuiet();
                            });
  live_.emplace(number, guest);
  mostLive_.see(live_.size());
  if (outputPaused_) {
    guest->pauseOutput();
  }
  return guest;
}

// When its answer is on the way.
void SessionHandle::tellCommand(const CommandWatch& watch) {
  if (logEnabled(LogLevel::kInfo)) {
    boost::asio::post(services_.loop.context(),
                      [self = shared_from_this(), watch] { watch.writeLine(self->id_, self->state_.sessionId); });
  }
}

std::shared_ptr<ToolSession> SessionHandle::tools() {
  if (!tools_) {
    const auto weak = weak_from_this();
    tools_ = std::make_shared<SessionTools>(
        session_, SessionTools::Hooks{[weak](Command command, Guest::Completion completion) {
                                        return weak.lock()->start(CommandKind::kTool, std::move(command), {}, {},
                                                                  std::move(completion));
                                      },
                                      [weak] { return weak.lock()->grade(); },
                                      [weak] {
                                        if (const auto self = weak.lock()) {
                                          self->finishStopWhenQuiet();
                                        }
                                      }});
  }
  return tools_;
}

void SessionHandle::setOutputPaused(bool paused) {
  outputPaused_ = paused;
  gateway_.setPaused(paused);
  const auto guests = live_;
  for (const auto& [number, guest] : guests) {
    if (paused) {
      guest->pauseOutput();
    } else {
      guest->resumeOutput();
    }
  }
}

void SessionHandle::probe(std::function<void(Grade)> done) {
  ++probes_;
  proveIsolation(services_, *profile_, session_, [self = shared_from_this(), done](Result<void> proven) {
    if (proven) {
      done(self->grade());
    } else {
      Grade grade;
      const Error& error = proven.error();
      grade.unavailable = error.reason.empty() ? error.message : error.reason + ": " + error.message;
      done(std::move(grade));
    }
    --self->probes_;
    self->finishStopWhenQuiet();
  });
}

void SessionHandle::setNetworkPolicy(NetworkPolicy policy, std::function<void(Result<Grade>)> done) {
  if (stage_ != Stage::kLive) {
    done(stoppedError());
    return;
  }
  if (!live_.empty() || policyChanging_) {
    done(Error(ErrorKind::kBusy, "Commands are live").withHint("Change the policy when they have ended."));
    return;
  }
  if (policy == policy_) {
    done(grade());
    return;
  }
  policyChanging_ = true;
  ++probes_;
  warm_->suspend();
  const auto finish = [self = shared_from_this(), done](Result<Grade> grade) {
    self->policyChanging_ = false;
    if (self->stage_ == Stage::kLive) {
      self->warm_->resume(self->profile_);
    }
    done(self->stage_ == Stage::kLive ? std::move(grade) : Result<Grade>(stoppedError()));
    --self->probes_;
    self->finishStopWhenQuiet();
  };
  services_.workers.run(
      Workers::Kind::kInternal, 0,
      [this, self = shared_from_this(), session = session_, policy, cgroup = cgroup_] {
        return makeProfile(services_, *session, policy, resources_, cgroup);
      },
      [self = shared_from_this(), policy, finish](Result<std::shared_ptr<const PreparedProfile>> profile) {
        if (!profile) {
          finish(std::move(profile).error());
          return;
        }
        proveIsolation(self->services_, **profile, self->session_,
                       [self, policy, finish, made = *profile](Result<void> proven) {
                         if (!proven) {
                           finish(std::move(proven).error());
                           return;
                         }
                         self->setProvenPolicy(made, policy, finish);
                       });
      });
}

// Guests of the old profile are gone, and what they had in flight ends before the new policy is answered.
void SessionHandle::setProvenPolicy(std::shared_ptr<const PreparedProfile> profile, const NetworkPolicy& policy,
                                    std::function<void(Result<Grade>)> finish) {
  gateway_.setPolicy(
      policy, [self = shared_from_this(), profile = std::move(profile), policy, finish = std::move(finish)] {
        self->profile_ = profile;
        self->policy_ = policy;
        logEvent(LogLevel::kInfo, "policy-changed",
                 {{"handle", self->id_}, {"session", self->state_.sessionId}, {"network", nameOf(policy.kind())}});
        finish(self->grade());
      });
}

void SessionHandle::stop(Done done) {
  if (stage_ == Stage::kStopped || stage_ == Stage::kDeleted) {
    done({});
    return;
  }
  stopWaiters_.push_back(std::move(done));
  beginStop();
}

void SessionHandle::remove(Done done) {
  if (stage_ == Stage::kDeleted) {
    done({});
    return;
  }
  removeWaiters_.push_back(std::move(done));
  if (stage_ == Stage::kStopped) {
    removeStopped();
  } else {
    beginStop();
  }
}

void SessionHandle::beginStop() {
  if (stage_ != Stage::kLive) {
    return;
  }
  stage_ = Stage::kStopping;
  warm_->close();
  const auto guests = live_;
  for (const auto& [number, guest] : guests) {
    guest->kill(EndCause::kStopped);
  }
  gateway_.close([self = shared_from_this()] {
    self->gatewayOpen_ = false;
    self->finishStopWhenQuiet();
  });
  files_->stop();
  if (tools_) {
    tools_->stop();
  }
  finishStopWhenQuiet();
}

// The lease is freed (and files are removed) on a worker, when nothing that could touch the workspace is left.
void SessionHandle::finishStopWhenQuiet() {
  if (stage_ != Stage::kStopping || releasing_ || !live_.empty() || files_->active() != 0 || toolsActive() ||
      probes_ != 0 || gatewayOpen_) {
    return;
  }
  releasing_ = true;
  const bool removal = !removeWaiters_.empty();
  services_.workers.run(
      Workers::Kind::kInternal, 0,
      [this, self = shared_from_this(), session = std::exchange(session_, nullptr), removal]() mutable {
        Result<void> removed;
        if (removal) {
          removed = services_.sessions.remove(state_.sessionId, session.get());
        }
        session->release();
        session.reset();
        return removed;
      },
      [self = shared_from_this(), removal](Result<void> removed) { self->onReleased(std::move(removed), removal); });
}

void SessionHandle::onReleased(Result<void> removed, bool wasRemoval) {
  releasing_ = false;
  // The handle's name is known as long as the sidecar runs; what it needed to work is not kept so long.
  profile_.reset();
  cgroup_.reset();
  const bool wasStopped = stage_ == Stage::kStopped;
  stage_ = wasRemoval && removed ? Stage::kDeleted : Stage::kStopped;
  for (auto& waiter : std::exchange(stopWaiters_, {})) {
    waiter({});
  }
  if (wasRemoval) {
    for (auto& waiter : std::exchange(removeWaiters_, {})) {
      waiter(removed);
    }
  } else if (!removeWaiters_.empty()) {
    removeStopped();
  }
  tellEnd(wasStopped);
  files_.reset();
  if (warm_) {
    // When the answers are on their way.
    boost::asio::post(services_.loop.context(), [warm = std::exchange(warm_, nullptr)] { warm->end(); });
  }
}

void SessionHandle::tellEnd(bool wasStopped) {
  BackendCounts& counts = services_.counts;
  counts.stopped += wasStopped ? 0 : 1;
  const bool deleted = stage_ == Stage::kDeleted;
  counts.deleted += deleted ? 1 : 0;
  if (wasStopped && !deleted) {
    return;  // a delete that was refused
  }
  logEvent(LogLevel::kInfo, deleted ? "session-deleted" : "session-stopped",
           {{"handle", id_},
            {"session", state_.sessionId},
            {"commands", nextGuest_},
            {"gatewayRequests", gatewayWatch_->total()}});
}

void SessionHandle::removeStopped() {
  if (std::exchange(releasing_, true)) {
    return;
  }
  services_.workers.run(
      Workers::Kind::kInternal, 0,
      [this, self = shared_from_this()] { return services_.sessions.remove(state_.sessionId, nullptr); },
      [self = shared_from_this()](Result<void> removed) { self->onReleased(std::move(removed), true); });
}

}  // namespace stitchkit
