// A live session as the coding tools see it.
#pragma once

#include <functional>
#include <memory>
#include <unordered_set>

#include "backend/launch/guest.h"
#include "backend/requests.h"
#include "backend/storage/session_store.h"
#include "codingtools/tool_session.h"

namespace stitchkit {

/// Loop-thread only, but for what a ToolWork gives. Its handle must outlive the session's last work.
class SessionTools : public ToolSession, public std::enable_shared_from_this<SessionTools> {
 public:
  struct Hooks {
    /// Admits and starts a command.
    std::function<Result<std::shared_ptr<Guest>>(Command, Guest::Completion)> start;
    std::function<Grade()> grade;
    std::function<void()> onIdle;  ///< no work is left
  };

  SessionTools(std::shared_ptr<StoredSession> session, Hooks hooks);

  Result<std::shared_ptr<ToolWork>> begin(const std::shared_ptr<Cancellation>& cancellation) override;
  [[nodiscard]] ToolGrade grade() const override;
  [[nodiscard]] bool stopped() const override { return !kept_; }
  void run(const std::shared_ptr<ToolWork>& work, ToolCommand command, CommandDone done) override;

  /// Calls at work.
  [[nodiscard]] std::size_t active() const { return works_.size(); }
  /// Ends what can be ended early; nothing more begins. The session is let go with the last work.
  void stop();

 private:
  class Work;
  struct Kept;

  void ended(Work* work);

  std::shared_ptr<Kept> kept_;  ///< the session, until it was stopped
  Hooks hooks_;
  std::unordered_set<Work*> works_;
};

}  // namespace stitchkit
