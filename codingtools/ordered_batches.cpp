#include "codingtools/ordered_batches.h"

#include <system_error>
#include <utility>

namespace stitchkit {

namespace {

/// Batches under way; each keeps a directory open.
constexpr std::size_t kSlots = 32;
/// Of texts with matches that wait to be taken. Above it only the batch is searched whose turn it is.
constexpr std::size_t kHeldTextBytes = 16UL * 1024 * 1024;

}  // namespace

OrderedBatches::OrderedBatches(const LineSearch& search, const BatchLimits& limits, unsigned threads, Take take,
                               std::stop_token stop)
    : search_(search), limits_(limits), threads_(threads), take_(std::move(take)), stop_(std::move(stop)) {}

OrderedBatches::~OrderedBatches() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  for (std::thread& helper : helpers_) {
    helper.join();
  }
}

bool OrderedBatches::add(std::unique_ptr<SearchBatch> batch) {
  Lock lock(mutex_);
  while (!enough_ && slots_.size() >= kSlots) {
    if (!searchOne(lock, buffer_)) {
      changed_.wait(lock);
    }
  }
  if (enough_) {
    return false;
  }
  slots_.push_back({std::move(batch), false, false});
  if (slots_.size() > 1 && helpers_.empty()) {
    startHelpers();
  }
  lock.unlock();
  changed_.notify_one();
  return true;
}

/// Without a thread more the work is done by those that are there.
void OrderedBatches::startHelpers() {
  try {
    for (unsigned i = 1; i < threads_; ++i) {
      helpers_.emplace_back([this] { help(); });
    }
  } catch (const std::system_error&) {
    return;
  }
}

void OrderedBatches::finish() {
  Lock lock(mutex_);
  while (!enough_ && !slots_.empty()) {
    if (!searchOne(lock, buffer_)) {
      changed_.wait(lock);
    }
  }
}

void OrderedBatches::help() {
  ReadBuffer buffer;
  Lock lock(mutex_);
  while (!enough_ && !ended_) {
    if (!searchOne(lock, buffer)) {
      changed_.wait(lock);
    }
  }
}

OrderedBatches::Slot* OrderedBatches::nextWaiting() {
  const bool full = textBytes_ > kHeldTextBytes && begun_ > 0;
  return begun_ == slots_.size() || full ? nullptr : &slots_[begun_];
}

/// Searches the first batch that waits, without the lock. References to slots stay valid while others come and go at
/// the ends, and a slot that is begun is not removed before it is done.
bool OrderedBatches::searchOne(Lock& lock, ReadBuffer& buffer) {
  Slot* const slot = nextWaiting();
  if (slot == nullptr) {
    return false;
  }
  slot->begun = true;
  ++begun_;
  lock.unlock();
  slot->batch->search(search_, limits_, buffer, stop_);
  lock.lock();
  slot->done = true;
  textBytes_ += slot->batch->textBytes();
  takeDone();
  return true;
}

void OrderedBatches::takeDone() {
  bool taken = false;
  while (!enough_ && !slots_.empty() && slots_.front().done) {
    textBytes_ -= slots_.front().batch->textBytes();
    enough_ = !take_(*slots_.front().batch);
    slots_.pop_front();
    --begun_;
    taken = true;
  }
  if (taken) {
    changed_.notify_all();
  }
}

}  // namespace stitchkit
