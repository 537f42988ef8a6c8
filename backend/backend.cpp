#include "backend/backend.h"

#include <utility>
#include <vector>

#include "backend/storage/staging.h"
#include "rpc/base/startup_pages.h"

namespace stitchkit {
namespace {

Error endedError() {
  return Error(ErrorKind::kStopped, "The sidecar was shut down").withHint("Start another one.");
}

// What the schema lets through and this version or machine cannot enforce.
Result<void> enforceable(const CreateParams& params) {
  if (params.resources.unsupported) {
    return Error(ErrorKind::kUnavailable, "The ceiling " + *params.resources.unsupported + " cannot be enforced yet")
        .withDetail("resource", *params.resources.unsupported)
        .withHint("Leave it out; tmpBytes, maxFileBytes and maxOpenFiles are enforced.");
  }
  return {};
}

}  // namespace

// One backend.create on its way: staged on a worker, proven on the loop, published on a worker.
struct Backend::Creation {
  CreateParams params;
  std::shared_ptr<Cancellation> cancellation;
  std::function<void(Result<CreateResult>)> done;
  std::shared_ptr<StoredSession> session;
  std::shared_ptr<const PreparedProfile> profile;
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
  return config_;
}

Result<BackendServices*> Backend::use() {
  if (!services_) {
    Result<std::shared_ptr<Warden>> warden = hooks_.beforeFirstUse();
    if (!warden) {
      return std::move(warden).error();
    }
    config_.warden = std::move(*warden);
    services_ = std::make_unique<BackendServices>(loop_, workers_, config_);
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
          return std::move(made).error();
        }
        return PrewarmResult{made->reused, std::move(made->templateKey)};
      },
      std::move(done));
}

void Backend::create(CreateParams params, const std::shared_ptr<Cancellation>& cancellation,
                     std::function<void(Result<CreateResult>)> done) {
  if (Result<void> possible = enforceable(params); !possible) {
    done(std::move(possible).error());
    return;
  }
  if (const Result<BackendServices*> services = use(); !services) {
    done(services.error());
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
    UniqueFd gatewaySocket;
  };
  workers_.run(
      Workers::Kind::kRequest, 0,
      [services = services_.get(), creation]() -> Result<Staged> {
        auto session = stage(*services, creation->params, creation->cancellation->token());
        if (!session) {
          return std::move(session).error();
        }
        auto profile = makeProfile(*services, **session, creation->params.network, creation->params.resources);
        if (!profile) {
          return std::move(profile).error();
        }
        auto socket = openGatewaySocket(**session);
        if (!socket) {
          return std::move(socket).error();
        }
        return Staged{std::move(*session), std::move(*profile), std::move(*socket)};
      },
      [this, creation](Result<Staged> staged) {
        if (!staged) {
          failCreation(creation, std::move(staged).error());
          return;
        }
        creation->session = std::move(staged->session);
        creation->profile = std::move(staged->profile);
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
          return std::move(published).error();
        }
        return makeProfile(*services, *creation->session, creation->params.network, creation->params.resources);
      },
      [this, creation](Result<Profile> profile) {
        if (!profile) {
          failCreation(creation, std::move(profile).error());
          return;
        }
        const std::string id = "h" + std::to_string(++lastHandle_);
        HandleParts parts{std::move(creation->session), std::move(*profile), creation->params.network,
                          creation->params.resources, std::move(creation->gatewaySocket)};
        auto handle = std::make_shared<SessionHandle>(
            *services_, id, std::move(parts),
            [this, id](const GatewayFailure& failure) { hooks_.gatewayFailed(id, failure); });
        handle->setOutputPaused(outputPaused_);
        if (handles_.empty()) {
          releaseStartupPages();
        }
        handles_.emplace(handle->id(), handle);
        creation->done(CreateResult{handle->id(), *handle->captureState(), handle->grade()});
        creationOver();
      });
}

// What was staged is removed on a worker before the answer: whatever fails, nothing is left behind.
void Backend::failCreation(const std::shared_ptr<Creation>& creation, Error error) {
  workers_.run(
      Workers::Kind::kInternal, 0, [creation] { return creation->session.reset(), true; },
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
