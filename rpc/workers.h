// A bounded pool of threads for work that blocks, with its result back on the loop.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "rpc/base/error.h"
#include "rpc/loop.h"
#include "rpc/queue_state.h"

namespace stitchkit {

/// submit() and the gates are loop-thread only; jobs run on the workers. Must outlive what it runs: the destructor
/// waits for running jobs and drops waiting ones.
class Workers {
 public:
  enum class Kind : std::uint8_t {
    kRequest,   ///< waits while the host does not read, and counts towards `congested`
    kInternal,  ///< always goes on: stopping, deleting, publishing
  };

  /// When threads begin beside the first, which the constructor starts.
  enum class Begin : std::uint8_t {
    kTogether,    ///< all with the first job
    kWhenNeeded,  ///< each with a job that finds none that is free
  };
  /// Throws std::system_error where not one thread is to be had.
  Workers(Loop& loop, unsigned threads, Begin begin = Begin::kTogether);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Runs `work()` on a worker, `done(result)` on the loop, and beside that `after()` on the worker: for what is slow
  /// and nobody waits for. The result and what `done` holds are let go on the loop.
  /// @param bytes what the job holds in memory while it waits.
  template <class Work, class Done, class After>
  void run(Kind kind, std::size_t bytes, Work work, Done done, After after) {
    // By pointer: to move a lambda copies what it has captured as const, and the worker would keep the original.
    submit(kind, bytes,
           [this, kind, work = std::move(work), done = std::make_shared<Done>(std::move(done)),
            after = std::move(after)]() mutable {
             auto result = std::make_shared<std::invoke_result_t<Work&>>(work());
             undelivered(kind);
             loop_.post([this, kind, alive = std::weak_ptr(alive_), done = std::move(done),
                         result = std::move(result)]() mutable {
               (*done)(std::move(*result));
               result.reset();
               if (!alive.expired()) {
                 delivered(kind);
               }
             });
             after();
           });
  }
  template <class Work, class Done>
  void run(Kind kind, std::size_t bytes, Work work, Done done) {
    run(kind, bytes, std::move(work), std::move(done), [] {});
  }

  /// While held, no new kRequest job starts.
  void holdRequests(bool held);
  /// No request waits, so that one that needs no worker may be answered on the loop out of turn.
  [[nodiscard]] bool nothingWaits();
  /// Bytes of the requests that wait.
  [[nodiscard]] std::size_t waitingBytes();
  /// Too much is waiting: nothing more should be read from the host.
  [[nodiscard]] bool congested();
  /// What waits: requests, and their bytes.
  struct Queues {
    QueueState requests;
    QueueState bytes;
  };
  [[nodiscard]] Queues queues();
  /// Called on the loop when `congested` has become false again.
  void onRelieved(std::function<void()> action) { relieved_ = std::move(action); }

 private:
  struct Job {
    std::size_t bytes;
    std::function<void()> run;
  };

  template <class F>
  void submit(Kind kind, std::size_t bytes, F job) {
    // std::function copies; a job owns what cannot be copied.
    auto shared = std::make_shared<F>(std::move(job));
    enqueue(kind, {bytes, [shared] { (*shared)(); }});
  }
  void enqueue(Kind kind, Job job);
  void startThread();
  void startFurther(bool needed);
  void undelivered(Kind kind);
  void delivered(Kind kind);
  void serve();
  bool take(Job& job, std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool congestedLocked() const;
  [[nodiscard]] bool requestMayStart() const;

  Loop& loop_;
  unsigned threadCount_;
  Begin begin_;
  std::function<void()> relieved_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> requests_;  // guarded by mutex_, as all below
  std::deque<Job> internal_;
  std::size_t requestBytes_ = 0;
  HighWater mostRequests_;
  HighWater mostBytes_;
  std::size_t undelivered_ = 0;  ///< results of requests on their way to the loop
  std::size_t free_ = 0;         ///< threads that wait for a job
  bool held_ = false;
  bool stopping_ = false;
  bool wasCongested_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  ///< for results that the loop gets to later
  std::vector<std::thread> threads_;                      ///< loop thread only
};

}  // namespace stitchkit
