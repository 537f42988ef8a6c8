// A loop and a sink without a kernel beneath them: tasks wait until the test runs them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rpc/loop.h"
#include "rpc/peer.h"

namespace stitchkit {

/// post() from any thread; the thread that made it runs the tasks.
class QueueLoop : public Loop {
 public:
  void post(std::function<void()> task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    posted_.notify_all();
  }
  [[nodiscard]] bool onLoop() const override { return std::this_thread::get_id() == owner_; }

  /// Runs what is there, and what that posts, until nothing is left.
  void drain() {
    while (runOne(std::chrono::milliseconds(0))) {
    }
  }
  /// Runs tasks until `ready()`; throws when that takes longer than a test may.
  void runUntil(const std::function<bool()>& ready) {
    while (!ready()) {
      if (!runOne(std::chrono::seconds(30))) {
        throw std::runtime_error("nothing came to the loop for 30 s");
      }
    }
  }

 private:
  bool runOne(std::chrono::milliseconds patience) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      if (!posted_.wait_for(lock, patience, [this] { return !tasks_.empty(); })) {
        return false;
      }
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
    return true;
  }

  std::thread::id owner_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> tasks_;
};

/// Keeps what was sent.
class RecordingSink : public MessageSink {
 public:
  void send(std::string text) override { sent.push_back(std::move(text)); }
  std::vector<std::string> sent;
};

}  // namespace stitchkit
