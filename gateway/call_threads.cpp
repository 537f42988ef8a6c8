#include "gateway/call_threads.h"

#include <chrono>
#include <system_error>
#include <utility>

namespace stitchkit {
namespace {

constexpr std::chrono::seconds kThreadIdle{10};

}  // namespace

CallThreads::~CallThreads() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  wake_.notify_all();
  while (!threads_.empty()) {
    std::list<std::thread> running;
    running.swap(threads_);
    lock.unlock();
    for (std::thread& thread : running) {
      thread.join();
    }
    lock.lock();
  }
  reap();
}

bool CallThreads::run(std::function<void()> call) {
  std::unique_lock lock(mutex_);
  waiting_.push_back(std::move(call));
  if (waiting_.size() > free_ && !startThread() && threads_.empty()) {
    waiting_.pop_back();
    return false;
  }
  lock.unlock();
  wake_.notify_one();
  return true;
}

bool CallThreads::startThread() {
  reap();
  threads_.emplace_front();
  const auto self = threads_.begin();
  try {
    *self = std::thread([this, self] { serve(self); });
  } catch (const std::system_error&) {
    threads_.erase(self);
    return false;
  }
  return true;
}

void CallThreads::serve(std::list<std::thread>::iterator self) {
  std::unique_lock lock(mutex_);
  while (true) {
    ++free_;
    const bool woken = wake_.wait_for(lock, kThreadIdle, [this] { return stopping_ || !waiting_.empty(); });
    --free_;
    if (waiting_.empty()) {
      if (!woken && !stopping_) {
        ended_.splice(ended_.begin(), threads_, self);
      }
      return;
    }
    std::function<void()> call = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    call();
    call = nullptr;
    lock.lock();
  }
}

void CallThreads::reap() {
  for (std::thread& thread : ended_) {
    thread.join();
  }
  ended_.clear();
}

}  // namespace stitchkit
