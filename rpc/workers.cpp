#include "rpc/workers.h"

#include <algorithm>
#include <csignal>
#include <system_error>

#include "rpc/base/limits.h"

namespace stitchkit {

Workers::Workers(Loop& loop, unsigned threads, Begin begin) : loop_(loop), threadCount_(threads), begin_(begin) {
  startThread();
}

void Workers::startThread() {
  // Signals are the loop's business.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    threads_.emplace_back([this] { serve(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Workers::startFurther(bool needed) {
  try {
    const std::size_t count = begin_ == Begin::kTogether ? threadCount_ : threads_.size() + (needed ? 1 : 0);
    while (threads_.size() < std::min<std::size_t>(count, threadCount_)) {
      startThread();
    }
  } catch (const std::system_error&) {
    return;  // the work is done by those that are there
  }
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void Workers::holdRequests(bool held) {
  {
    const std::lock_guard lock(mutex_);
    held_ = held;
  }
  if (!held) {
    wake_.notify_all();
  }
}

bool Workers::nothingWaits() {
  const std::lock_guard lock(mutex_);
  return !held_ && requests_.empty();
}

std::size_t Workers::waitingBytes() {
  const std::lock_guard lock(mutex_);
  return requestBytes_;
}

bool Workers::congestedLocked() const {
  return requests_.size() >= limits::kQueuedRequests || requestBytes_ >= limits::kQueuedRequestBytes;
}

bool Workers::congested() {
  const std::lock_guard lock(mutex_);
  wasCongested_ = congestedLocked();
  return wasCongested_;
}

Workers::Queues Workers::queues() {
  const std::lock_guard lock(mutex_);
  return {{requests_.size(), mostRequests_.value(), limits::kQueuedRequests},
          {requestBytes_, mostBytes_.value(), limits::kQueuedRequestBytes}};
}

void Workers::enqueue(Kind kind, Job job) {
  bool needed = false;
  {
    const std::lock_guard lock(mutex_);
    if (kind == Kind::kRequest) {
      requestBytes_ += job.bytes;
      requests_.push_back(std::move(job));
      mostRequests_.see(requests_.size());
      mostBytes_.see(requestBytes_);
    } else {
      internal_.push_back(std::move(job));
    }
    needed = free_ < internal_.size() + requests_.size();
  }
  wake_.notify_one();
  startFurther(needed);
}

bool Workers::requestMayStart() const {
  return !held_ && !requests_.empty() && undelivered_ < limits::kUndeliveredResults;
}

void Workers::undelivered(Kind kind) {
  const std::lock_guard lock(mutex_);
  undelivered_ += kind == Kind::kRequest ? 1 : 0;
}

void Workers::delivered(Kind kind) {
  if (kind != Kind::kRequest) {
    return;
  }
  bool wasFull = false;
  {
    const std::lock_guard lock(mutex_);
    wasFull = undelivered_-- >= limits::kUndeliveredResults;
  }
  if (wasFull) {
    wake_.notify_all();
  }
}

bool Workers::take(Job& job, std::unique_lock<std::mutex>& lock) {
  ++free_;
  wake_.wait(lock, [this] { return stopping_ || !internal_.empty() || requestMayStart(); });
  --free_;
  if (stopping_) {
    return false;
  }
  std::deque<Job>& queue = internal_.empty() ? requests_ : internal_;
  job = std::move(queue.front());
  queue.pop_front();
  if (&queue == &requests_) {
    requestBytes_ -= job.bytes;
  }
  return true;
}

void Workers::serve() {
  std::unique_lock lock(mutex_);
  Job job;
  while (take(job, lock)) {
    const bool nowRelieved = wasCongested_ && !congestedLocked();
    wasCongested_ = wasCongested_ && !nowRelieved;
    lock.unlock();
    if (nowRelieved && relieved_) {
      loop_.post(relieved_);
    }
    job.run();
    job = {};
    lock.lock();
  }
}

}  // namespace stitchkit
