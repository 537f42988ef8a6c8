#include "backend/backend.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

#include "backend/diagnosis/cause.h"
#include "backend/diagnosis/set_up_cause.h"
#include "backend/storage/staging.h"
#include "rpc/base/limits.h"
#include "rpc/base/log.h"
#include "rpc/base/startup_pages.h"

namespace stitchkit {
namespace {

Error endedError() {
  return Error(ErrorKind::kStopped, "The sidecar was shut down").withHint("Start another one.");
}

/// The queues that each handle has: the fullest one now, and the most that any ever had.
class FullestHandle {
 public:
  explicit FullestHandle(int maxCommands) { commands_.limit = static_cast<std::uint64_t>(maxCommands); }

  void see(std::uint64_t liveCommands, const HighWater& mostCommands, const GatewayWatch& gateway) {
    add(commands_, liveCommands, mostCommands.value());
    add(requests_, gateway.requests.now(), gateway.requests.most());
    add(connections_, gateway.connections.now(), gateway.connections.most());
    add(waiting_, gateway.waitingConnections.now(), gateway.waitingConnections.most());
    add(bodies_, gateway.heldBodyBytes.now(), gateway.heldBodyBytes.most());
  }
  void addTo(std::vector<std::pair<std::string_view, QueueState>>& queues) const {
    queues.emplace_back("handleCommands", commands_);
    queues.emplace_back("handleGatewayRequests", requests_);
    queues.emplace_back("handleGatewayConnections", connections_);
    queues.emplace_back("handleGatewayWaiting", waiting_);
    queues.emplace_back("handleGatewayBodyBytes", bodies_);
  }

 private:
  static void add(QueueState& queue, std::uint64_t now, std::uint64_t most) {
    queue.depth = std::max(queue.depth, now);
    queue.highWater = std::max(queue.highWater, most);
  }

  QueueState commands_;
  QueueState requests_{0, 0, limits::kGatewayRequests};
  QueueState connections_{0, 0, limits::kGatewayConnections};
  QueueState waiting_{0, 0, limits::kGatewayConnections};
  QueueState bodies_{0, 0, limits::kGatewayHeldBodyBytes};
};

// Those that were made last, in the order of their names' numbers.
std::vector<SessionHandle*> latest(std::vector<SessionHandle*> handles) {
  std::sort(handles.begin(), handles.end(), [](const SessionHandle* a, const SessionHandle* b) {
    return std::pair(a->id().size(), a->id()) < std::pair(b->id().size(), b->id());
  });
  if (handles.size() > limits::kStatsHandles) {
    handles.erase(handles.begin(), handles.end() - limits::kStatsHandles);
  }
  return handles;
}

// The storage of a session that is not there yet: its failure is the state directory's, in the words of the doctor.
Error judgeStorage(const std::string& stateDirectory, Error error) {
  const auto cause = error.kind == ErrorKind::kInternal && error.errnoNumber != 0
                         ? causeOfStateDirectory(stateDirectory, error.errnoNumber)
                         : std::nullopt;
  return cause ? unavailableBecause(error.message, *cause).withPrivate(std::move(error.privateDetail))
               : std::move(error);
}

}  // namespace

// One backend.create on its way: staged on a worker, proven on the loop, published on a worker.
struct Backend::Creation {
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  CreateParams params;
  std::shared_ptr<Cancellation> cancellation;
  std::function<void(Result<CreateResult>)> done;
  std::shared_ptr<StoredSession> session;
  std::shared_ptr<const PreparedProfile> profile;
  std::shared_ptr<SessionCgroup> cgroup;
  UniqueFd gatewaySocket;
};

Backend::Backend(AsioLoop& loop, Workers& workers, BackendConfig config, Hooks hooks)
    : loop_(loop), workers_(workers), config_(std::move(config)), hooks_(std::move(hooks)) {}

Result<void> Backend::open() const {
  if (ended_) {
    return endedError();
  }
  return {};
}

Result<BackendConfig> Backend::initialize(const InitializeParams& params) {
  if (initialized_ || services_) {
    return Error(ErrorKind::kInvalidRequest, "initialize comes once, before any other use of the backend")
        .withHint("Send it first, or start another sidecar.");
  }
  if (params.stateDirectory) {
    if (Result<void> adopted = hooks_.adoptStateDirectory(*params.stateDirectory); !adopted) {
      return std::move(adopted).error();
    }
  }
  initialized_ = true;
  config_.stateDirectory = params.stateDirectory.value_or(config_.stateDirectory);
  config_.name = params.name.value_or(config_.name);
  config_.bubblewrap = params.executable.value_or(config_.bubblewrap);
  config_.maxConcurrentCommands = params.maxConcurrentCommands.value_or(config_.maxConcurrentCommands);
  logEvent(LogLevel::kInfo, "initialized",
           {{"client", params.clientName},
            {"clientVersion", params.clientVersion},
            {"backend", config_.name},
            {"stateDirectory", config_.stateDirectory}});
  return config_;
}

Result<BackendServices*> Backend::use() {
  if (!services_) {
    CgroupTree cgroups(*config_.cgroups);
    Result<std::shared_ptr<Warden>> warden = hooks_.beforeFirstUse(cgroups.directories());
    if (!warden) {
      return std::move(warden).error();
    }
    config_.warden = std::move(*warden);
    try {
      services_ = std::make_unique<BackendServices>(loop_, workers_, config_, std::move(cgroups));
    } catch (const std::system_error& failure) {
      return unavailableBecause("The backend could not be started", causeOfSpawn(failure.code().value()))
          .withPrivate(failure.what());
    }
    workers_.run(
        Workers::Kind::kInternal, 0,
        [layout = services_->layout, support = services_->supportDirectory] {
          sweepStaging(layout);
          SupportFiles::sweep(support);
          return true;
        },
        [](bool) {});
  }
  return services_.get();
}

void Backend::prewarm(TemplateParams params, const std::shared_ptr<Cancellation>& cancellation,
                      std::function<void(Result<PrewarmResult>)> done) {
  const Result<BackendServices*> services = use();
  if (!services) {
    done(services.error());
    return;
  }
  std::size_t bytes = 0;
  for (const TemplateFile& file : params.files) {
    bytes += file.content.size();
  }
  workers_.run(
      Workers::Kind::kRequest, bytes,
      [&services = **services, params = std::move(params), token = cancellation->token()]() -> Result<PrewarmResult> {
        auto made = services.templates.prewarm(params.name, params.files, token);
        if (!made) {
          return judgeStorage(services.config.stateDirectory, std::move(made).error());
        }
        return PrewarmResult{made->reused, std::move(made->templateKey)};
      },
      [done = std::move(done), began = std::chrono::steady_clock::now()](Result<PrewarmResult> made) {
        if (made) {
          logEvent(
              LogLevel::kInfo, "prewarm",
              {{"templateKey", made->templateKey}, {"reused", made->reused}, {"durationMs", millisecondsSince(began)}});
        }
        done(std::move(made));
      });
}

void Backend::create(CreateParams params, const std::shared_ptr<Cancellation>& cancellation,
                     std::function<void(Result<CreateResult>)> done) {
  const Result<BackendServices*> services = use();
  if (!services) {
    done(services.error());
    return;
  }
  if (Result<void> possible = checkEnforceable(**services, params.resources.session); !possible) {
    done(std::move(possible).error());
    return;
  }
  ++creations_;
  auto creation = std::make_shared<Creation>();
  creation->params = std::move(params);
  creation->cancellation = cancellation;
  creation->done = std::move(done);
  stageSession(creation);
}

namespace {

Result<std::string> templateKeyFor(const BackendServices& services, const CreateParams& params,
                                   const std::stop_token& token) {
  if (const auto* key = std::get_if<std::string>(&params.source)) {
    return *key;
  }
  const auto& source = std::get<TemplateParams>(params.source);
  auto made = services.templates.prewarm(source.name, source.files, token);
  if (!made) {
    return std::move(made).error();
  }
  return std::move(made->templateKey);
}

Result<std::shared_ptr<StoredSession>> stage(const BackendServices& services, const CreateParams& params,
                                             const std::stop_token& token) {
  Result<std::string> key = templateKeyFor(services, params, token);
  if (!key) {
    return std::move(key).error();
  }
  Result<StoredSession> session =
      params.state ? services.sessions.attach(*key, *params.state) : services.sessions.create(*key, token);
  if (!session) {
    return std::move(session).error();
  }
  return std::make_shared<StoredSession>(std::move(*session));
}

}  // namespace

void Backend::stageSession(const std::shared_ptr<Creation>& creation) {
  struct Staged {
    std::shared_ptr<StoredSession> session;
    std::shared_ptr<const PreparedProfile> profile;
    std::shared_ptr<SessionCgroup> cgroup;
    UniqueFd gatewaySocket;
  };
  workers_.run(
      Workers::Kind::kRequest, 0,
      [services = services_.get(), creation]() -> Result<Staged> {
        auto session = stage(*services, creation->params, creation->cancellation->token());
        if (!session) {
          return judgeStorage(services->config.stateDirectory, std::move(session).error());
        }
        auto cgroup = makeCgroup(*services, **session, creation->params.resources.session);
        if (!cgroup) {
          return std::move(cgroup).error();
        }
        auto profile = makeProfile(*services, **session, creation->params.network, creation->params.resources, *cgroup);
        if (!profile) {
          return std::move(profile).error();
        }
        auto socket = openGatewaySocket(**session);
        if (!socket) {
          return std::move(socket).error();
        }
        return Staged{std::move(*session), std::move(*profile), std::move(*cgroup), std::move(*socket)};
      },
      [this, creation](Result<Staged> staged) {
        if (!staged) {
          failCreation(creation, std::move(staged).error());
          return;
        }
        creation->session = std::move(staged->session);
        creation->profile = std::move(staged->profile);
        creation->cgroup = std::move(staged->cgroup);
        creation->gatewaySocket = std::move(staged->gatewaySocket);
        proveSession(creation);
      });
}

void Backend::proveSession(const std::shared_ptr<Creation>& creation) {
  if (ended_ || creation->cancellation->cancelled()) {
    failCreation(creation, ended_ ? endedError() : Error(ErrorKind::kCancelled, "The request was cancelled"));
    return;
  }
  proveIsolation(*services_, *creation->profile, creation->session, [this, creation](Result<void> proven) {
    if (proven) {
      publishSession(creation);
    } else {
      failCreation(creation, std::move(proven).error());
    }
  });
}

// Publishing renames the session into its place, so that the profile is made anew for the path it then has.
void Backend::publishSession(const std::shared_ptr<Creation>& creation) {
  using Profile = std::shared_ptr<const PreparedProfile>;
  workers_.run(
      Workers::Kind::kInternal, 0,
      [services = services_.get(), creation]() -> Result<Profile> {
        if (Result<void> published = creation->session->publish(); !published) {
          return judgeStorage(services->config.stateDirectory, std::move(published).error());
        }
        return makeProfile(*services, *creation->session, creation->params.network, creation->params.resources,
                           creation->cgroup);
      },
      [this, creation](Result<Profile> profile) {
        if (!profile) {
          failCreation(creation, std::move(profile).error());
          return;
        }
        const std::string id = "h" + std::to_string(++lastHandle_);
        HandleParts parts{std::move(creation->session), std::move(*profile),
                          creation->params.network,     creation->params.resources,
                          std::move(creation->cgroup),  std::move(creation->gatewaySocket)};
        auto handle = std::make_shared<SessionHandle>(
            *services_, id, std::move(parts),
            [this, id](const GatewayFailure& failure) { hooks_.gatewayFailed(id, failure); });
        handle->setOutputPaused(outputPaused_);
        if (handles_.empty()) {
          releaseStartupPages();
        }
        handles_.emplace(handle->id(), handle);
        tellCreated(*creation, *handle);
        creation->done(CreateResult{handle->id(), *handle->captureState(), handle->grade()});
        creationOver();
      });
}

void Backend::tellCreated(const Creation& creation, const SessionHandle& handle) {
  const bool attached = creation.params.state.has_value();
  ++(attached ? services_->counts.attached : services_->counts.created);
  logEvent(LogLevel::kInfo, attached ? "session-attached" : "session-created",
           {{"handle", handle.id()},
            {"session", handle.session()},
            {"network", nameOf(creation.params.network.kind())},
            {"durationMs", millisecondsSince(creation.began)}});
}

// What was staged is removed on a worker before the answer: whatever fails, nothing is left behind.
void Backend::failCreation(const std::shared_ptr<Creation>& creation, Error error) {
  workers_.run(
      Workers::Kind::kInternal, 0,
      [creation] {
        creation->profile.reset();
        creation->cgroup.reset();
        creation->session.reset();
        return true;
      },
      [this, creation, error = std::move(error)](bool) mutable {
        creation->done(std::move(error));
        creationOver();
      });
}

void Backend::creationOver() {
  if (--creations_ == 0 && afterCreations_) {
    std::exchange(afterCreations_, nullptr)();
  }
}

Result<std::shared_ptr<SessionHandle>> Backend::handle(std::string_view id) {
  const auto found = handles_.find(id);
  if (found == handles_.end()) {
    return Error(ErrorKind::kNotFound, "There is no such handle").withHint("backend.create gives one.");
  }
  return found->second;
}

void Backend::addStats(SidecarStats& stats) const {
  if (services_) {
    stats.backend = services_->counts;
    stats.warm = services_->warm.counts();
  }
  FullestHandle fullest(config_.maxConcurrentCommands);
  std::vector<SessionHandle*> live;
  for (const auto& [id, handle] : handles_) {
    const GatewayWatch& gateway = handle->gatewayWatch();
    for (std::size_t i = 0; i < kGatewayOutcomes; ++i) {
      stats.gatewayOutcomes[i] += gateway.count(static_cast<GatewayOutcome>(i));
    }
    stats.liveGatewayRequests += gateway.requests.now();
    fullest.see(handle->liveCommands(), handle->mostLive(), gateway);
    if (handle->live()) {
      live.push_back(handle.get());
    }
  }
  stats.liveHandles = live.size();
  // cppcheck-suppress accessMoved ; once, before the first round
  for (const SessionHandle* handle : latest(std::move(live))) {
    stats.handles.push_back(handle->stats());
  }
  fullest.addTo(stats.queues);
  stats.queues.emplace_back("waitingLaunches", stats.warm.waiting);
  stats.queues.emplace_back("endedProcesses", processes_.endedOnes());
  stats.queues.emplace_back("endedProcessBytes", processes_.endedBytes());
}

void Backend::stopAll(std::function<void()> done) {
  ended_ = true;
  if (creations_ == 0) {
    stopHandles(std::move(done));
    return;
  }
  afterCreations_ = [this, before = std::move(afterCreations_), done = std::move(done)] {
    if (before) {
      before();
    }
    stopHandles(done);
  };
}

void Backend::stopHandles(std::function<void()> done) {
  auto left = std::make_shared<std::size_t>(handles_.size() + 1);
  auto one = [left, done = std::move(done)](const Result<void>&) {
    if (--*left == 0) {
      done();
    }
  };
  const auto handles = handles_;
  for (const auto& [id, handle] : handles) {
    handle->stop(one);
  }
  one({});
}

void Backend::setOutputPaused(bool paused) {
  outputPaused_ = paused;
  for (const auto& [id, handle] : handles_) {
    handle->setOutputPaused(paused);
  }
}

}  // namespace stitchkit
