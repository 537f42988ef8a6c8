// Batches searched by several threads, their results taken in the order in which the batches came.
#pragma once

#include "codingtools/search_batch.h"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace stitchkit {

/// Few batches are under way at once, and few bytes of what they found. The thread that adds batches searches too when
/// too many wait; the others start when there is work for two, and end with the object.
class OrderedBatches {
 public:
  /// Takes each batch, in order, one call at a time, on any of the threads. False: enough, no more is taken.
  using Take = std::function<bool(SearchBatch&)>;

  /// `threads` counts the calling one. `search` and `take` outlive this.
  OrderedBatches(const LineSearch& search, const BatchLimits& limits, unsigned threads, Take take,
                 std::stop_token stop);
  ~OrderedBatches();
  OrderedBatches(const OrderedBatches&) = delete;
  OrderedBatches& operator=(const OrderedBatches&) = delete;

  /// Waits while too many are under way. False when no more are needed.
  bool add(std::unique_ptr<SearchBatch> batch);
  /// Waits until all have been taken, or enough.
  void finish();

 private:
  struct Slot {
    std::unique_ptr<SearchBatch> batch;
    bool begun = false;
    bool done = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  void help();
  bool searchOne(Lock& lock, ReadBuffer& buffer);
  Slot* nextWaiting();
  void takeDone();
  void startHelpers();

  const LineSearch& search_;
  const BatchLimits limits_;
  const unsigned threads_;
  const Take take_;
  const std::stop_token stop_;

  std::mutex mutex_;  ///< over all below
  std::condition_variable changed_;
  std::deque<Slot> slots_;  ///< the first is the next to be taken
  std::size_t begun_ = 0;   ///< of the slots, from the first on
  std::size_t textBytes_ = 0;
  bool enough_ = false;
  bool ended_ = false;

  ReadBuffer buffer_;  ///< of the calling thread
  std::vector<std::thread> helpers_;
};

}  // namespace stitchkit
