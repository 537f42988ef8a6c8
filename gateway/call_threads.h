// Threads for calls that block, begun when none is free and ended when there is nothing to do.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

namespace stitchkit {

/// No ceiling of its own: whoever runs something has counted it in (16 requests a handle). Thread-safe. The destructor
/// waits for what runs.
class CallThreads {
 public:
  CallThreads() = default;
  ~CallThreads();
  CallThreads(const CallThreads&) = delete;
  CallThreads& operator=(const CallThreads&) = delete;

  /// @return false when the call was not taken, since the system gives no thread.
  [[nodiscard]] bool run(std::function<void()> call);

 private:
  void serve(std::list<std::thread>::iterator self);
  bool startThread();
  void reap();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> waiting_;  // guarded by mutex_, as all below
  std::size_t free_ = 0;
  bool stopping_ = false;
  std::list<std::thread> threads_;
  std::list<std::thread> ended_;  // to be joined, which does not wait
};

}  // namespace stitchkit
