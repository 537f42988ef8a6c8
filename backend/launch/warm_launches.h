// Sandboxes that wait before exec, so that a command finds one ready and costs little more than its program.
//
// Each is a launch of its handle's profile like any other, with namespaces and a /tmp of its own, in which nothing of a
// guest has run; a command takes one, and no other command ever gets it. They hold no secret and no command.
#pragma once

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "backend/launch/launch_profile.h"
#include "backend/launch/sandbox_process.h"
#include "rpc/queue_state.h"

namespace stitchkit {

class WarmPool;

/// What the pools of all handles share: how many may wait, and when new ones may be started without being in the way
/// of commands. Loop thread only; outlives the pools.
class WarmLaunches {
 public:
  /// At most `each` wait for one handle; 0: none ever. In all, limits::kWarmLaunches and what RLIMIT_NOFILE has room
  /// for beside commands and files.
  WarmLaunches(boost::asio::io_context& io, std::size_t each);

  [[nodiscard]] std::shared_ptr<WarmPool> pool(std::shared_ptr<const PreparedProfile> profile);

  struct Counts {
    QueueState waiting;          ///< of all handles, those in set-up included
    std::uint64_t starting = 0;  ///< of these, in set-up
    std::uint64_t made = 0;      ///< since the start
    std::uint64_t failed = 0;    ///< could not be made ready
  };
  [[nodiscard]] Counts counts() const { return {{waiting_, mostWaiting_.value(), most_}, starting_, made_, failed_}; }

 private:
  friend class WarmPool;
  using Clock = std::chrono::steady_clock;

  /// A command has begun; returns what to give to commandEnded().
  std::uint64_t commandBegan();
  void commandEnded(std::uint64_t command);
  /// The pool lacks launches.
  void enqueue(std::weak_ptr<WarmPool> pool);
  void later(std::chrono::milliseconds delay);
  /// Something has ended that others may have waited for.
  void goOn();
  void turn();
  [[nodiscard]] std::size_t youngCommands() const;
  void failed();

  boost::asio::io_context& io_;
  std::size_t each_;
  std::size_t most_;
  std::size_t cores_;
  std::size_t waiting_ = 0;   // of all pools, those in set-up included
  std::size_t starting_ = 0;  // of these, in set-up
  HighWater mostWaiting_;
  std::uint64_t made_ = 0;
  std::uint64_t failed_ = 0;
  std::deque<std::weak_ptr<WarmPool>> lacking_;
  std::map<std::uint64_t, Clock::time_point> commands_;  // live ones, in the order of their beginning
  std::uint64_t lastCommand_ = 0;
  boost::asio::steady_timer timer_;
  bool armed_ = false;
  Clock::time_point notBefore_;
};

/// Those of one handle. Loop thread only.
class WarmPool : public std::enable_shared_from_this<WarmPool> {
 public:
  /// Suspended.
  explicit WarmPool(WarmLaunches& launches);

  struct Taken {
    std::shared_ptr<SandboxProcess> sandbox;  ///< one that waits, or is about to; nullptr when there is none
    std::uint64_t command;                    ///< for ended()
  };
  /// For a command that begins now.
  Taken take();
  /// Nothing of the command is left.
  void ended(std::uint64_t command);

  /// Ends all that wait. Until resume() there are none.
  void suspend();
  void resume(std::shared_ptr<const PreparedProfile> profile);
  /// None is taken or made any more. Those that wait are left alone until end(): their ends would take time from what a
  /// stop waits for, and they touch nothing.
  void close() { profile_ = nullptr; }
  [[nodiscard]] std::size_t waiting() const { return entries_.size(); }
  void end();

 private:
  friend class WarmLaunches;
  class Waiting;
  struct Entry {
    std::shared_ptr<SandboxProcess> sandbox;
    std::shared_ptr<Waiting> owner;
  };

  [[nodiscard]] bool lacks() const { return profile_ != nullptr && entries_.size() < wanted_; }
  void refillLater();
  void startOne();
  std::shared_ptr<SandboxProcess> takeOldest();
  void letGo(std::size_t index);
  void onReady();
  void onEnd(const Waiting* owner);
  void used();
  void awaitIdle();

  WarmLaunches& launches_;
  std::shared_ptr<const PreparedProfile> profile_;  // none while suspended
  std::size_t wanted_ = 0;
  std::deque<Entry> entries_;  // the oldest first
  bool enqueued_ = false;
  boost::asio::steady_timer idle_;
  bool idleArmed_ = false;
  WarmLaunches::Clock::time_point lastUse_;
};

}  // namespace stitchkit
