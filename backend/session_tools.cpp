#include "backend/session_tools.h"

#include <fcntl.h>

#include <utility>

namespace stitchkit {
namespace {

ToolCommandEnd::Outcome outcomeOf(EndCause cause) {
  switch (cause) {
    case EndCause::kDeadline:
      return ToolCommandEnd::Outcome::kTimeout;
    case EndCause::kOutputBudget:
      return ToolCommandEnd::Outcome::kOutputLimit;
    case EndCause::kCancelled:
      return ToolCommandEnd::Outcome::kCancelled;
    case EndCause::kExited:
    case EndCause::kStopped:
      break;
  }
  return ToolCommandEnd::Outcome::kExited;
}

Command commandOf(ToolCommand from) {
  Command command;
  command.executable = std::move(from.executable);
  command.arguments = std::move(from.arguments);
  command.workingDirectory = std::move(from.workingDirectory);
  command.environment = std::move(from.environment);
  command.timeout = from.timeout;
  command.maxOutputBytes = from.maxOutputBytes;
  return command;
}

}  // namespace

// The session's directory is where the workspace lies, wherever that was moved.
struct SessionTools::Kept {
  explicit Kept(std::shared_ptr<StoredSession> owned)
      : session(std::move(owned)),
        directory(::openat(session->workspace().descriptor(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC)),
        artifacts(directory.get(), session->staging()) {}

  std::shared_ptr<StoredSession> session;
  UniqueFd directory;
  ArtifactStore artifacts;
};

class SessionTools::Work : public ToolWork {
 public:
  Work(std::shared_ptr<SessionTools> owner, std::shared_ptr<Kept> kept)
      : owner_(std::move(owner)), kept_(std::move(kept)) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() override {
    kept_.reset();
    owner_->ended(this);
  }

  [[nodiscard]] const ContainedDirectory& workspace() const override { return kept_->session->workspace(); }
  [[nodiscard]] StagingDirectory& staging() const override { return kept_->session->staging(); }
  [[nodiscard]] ArtifactStore& artifacts() const override { return kept_->artifacts; }
  [[nodiscard]] std::stop_token ended() const override { return ended_.get_token(); }
  [[nodiscard]] std::stop_token stopped() const override { return stopped_.get_token(); }

  void cancel() {
    ended_.request_stop();
    if (const auto guest = guest_.lock()) {
      guest->kill(EndCause::kCancelled);
    }
  }
  void stop() {
    stopped_.request_stop();
    ended_.request_stop();
  }
  void runs(const std::shared_ptr<Guest>& guest) { guest_ = guest; }

 private:
  std::shared_ptr<SessionTools> owner_;
  std::shared_ptr<Kept> kept_;
  std::stop_source ended_;
  std::stop_source stopped_;
  std::weak_ptr<Guest> guest_;
};

SessionTools::SessionTools(std::shared_ptr<StoredSession> session, Hooks hooks)
    : kept_(std::make_shared<Kept>(std::move(session))), hooks_(std::move(hooks)) {}

Result<std::shared_ptr<ToolWork>> SessionTools::begin(const std::shared_ptr<Cancellation>& cancellation) {
  if (!kept_) {
    return toolSessionStopped();
  }
  auto work = std::make_shared<Work>(shared_from_this(), kept_);
  works_.insert(work.get());
  cancellation->onCancel([weak = std::weak_ptr(work)] {
    if (const auto live = weak.lock()) {
      live->cancel();
    }
  });
  return work;
}

void SessionTools::ended(Work* work) {
  works_.erase(work);
  if (works_.empty()) {
    hooks_.onIdle();
  }
}

ToolGrade SessionTools::grade() const {
  Grade grade = hooks_.grade();
  return {grade.gaps.empty() ? "full" : "partial", std::move(grade.restrictions)};
}

void SessionTools::run(const std::shared_ptr<ToolWork>& work, ToolCommand command, CommandDone done) {
  const auto completion = [work, done](Result<GuestOutcome> outcome) {
    if (!outcome) {
      done(std::move(outcome).error());
    } else if (outcome->cause == EndCause::kStopped) {
      done(toolSessionStopped());
    } else {
      done(ToolCommandEnd{outcomeOf(outcome->cause), outcome->exitCode, std::move(outcome->standardOutput),
                          std::move(outcome->standardError), std::move(outcome->resource)});
    }
  };
  Result<std::shared_ptr<Guest>> guest = hooks_.start(commandOf(std::move(command)), completion);
  if (!guest) {
    done(guest.error().kind == ErrorKind::kStopped ? toolSessionStopped() : std::move(guest).error());
    return;
  }
  static_cast<Work&>(*work).runs(*guest);
}

void SessionTools::stop() {
  kept_.reset();
  const auto works = works_;
  for (Work* work : works) {
    work->stop();
  }
}

}  // namespace stitchkit
