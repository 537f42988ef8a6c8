// The commands that `session.spawn` started, by their names p1, p2, ...: the live ones, and the ended ones whose result
// may still be asked for.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backend/launch/guest.h"
#include "rpc/base/error.h"
#include "rpc/queue_state.h"

namespace stitchkit {

/// One spawned command. Loop-thread only.
class SpawnedProcess {
 public:
  using ResultReply = std::function<void(const Result<GuestOutcome>&)>;

  SpawnedProcess(std::string id, std::string handle, std::shared_ptr<Guest> guest)
      : id_(std::move(id)), handle_(std::move(handle)), guest_(std::move(guest)) {}

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] bool ended() const { return outcome_ != nullptr; }
  /// Calls back once, when the command has ended; at once when it has.
  void whenEnded(ResultReply reply);
  void stop();

 private:
  friend class ProcessTable;

  [[nodiscard]] std::size_t heldBytes() const;
  void letOutputGo();

  std::string id_;
  std::string handle_;
  bool told_ = false;             // its result, to somebody
  std::shared_ptr<Guest> guest_;  // while it lives
  std::unique_ptr<Result<GuestOutcome>> outcome_;
  std::vector<ResultReply> waiting_;
};

/// Keeps the results of ended processes within limits: the oldest are forgotten, those that somebody has been told
/// before those that nobody has asked for; where their output takes too much memory it is let go before that, of the
/// handle that holds most, and asking gives kLimit with what is left to know. Loop-thread only.
class ProcessTable {
 public:
  /// `handle` names the session's handle that the process belongs to.
  std::shared_ptr<SpawnedProcess> add(std::string handle, std::shared_ptr<Guest> guest);
  /// NOT_FOUND when the name was never given, or when the ended process has made room for later ones.
  Result<std::shared_ptr<SpawnedProcess>> find(std::string_view id) const;
  void ended(const std::shared_ptr<SpawnedProcess>& process, Result<GuestOutcome> outcome);

  /// Ended processes whose result is kept, and their output.
  [[nodiscard]] QueueState endedOnes() const;
  [[nodiscard]] QueueState endedBytes() const;

 private:
  void forgetOldest();
  void letOutputGo();
  [[nodiscard]] std::deque<std::shared_ptr<SpawnedProcess>>::iterator oldestTold();
  [[nodiscard]] std::string largestHandle() const;

  std::unordered_map<std::string, std::shared_ptr<SpawnedProcess>> processes_;
  std::deque<std::shared_ptr<SpawnedProcess>> endedOnes_;  // oldest first
  std::size_t endedBytes_ = 0;
  HighWater mostEnded_;
  HighWater mostEndedBytes_;
  std::size_t last_ = 0;
};

}  // namespace stitchkit
