// So many at once, and no more.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stop_token>
#include <utility>

namespace stitchkit {

/// Thread-safe.
class Slots {
 public:
  explicit Slots(std::size_t count) : free_(count) {}

  /// A slot, given back when it goes. Must not outlive the Slots.
  class Held {
   public:
    explicit Held(Slots* slots) : slots_(slots) {}
    Held(Held&& other) noexcept : slots_(std::exchange(other.slots_, nullptr)) {}
    Held& operator=(Held&&) = delete;
    ~Held();
    /// False when `stop` was requested before one was free.
    explicit operator bool() const noexcept { return slots_ != nullptr; }

   private:
    Slots* slots_;
  };

  /// Waits until one is free.
  [[nodiscard]] Held take(const std::stop_token& stop);

 private:
  std::mutex mutex_;
  std::condition_variable_any freed_;
  std::size_t free_;
};

}  // namespace stitchkit
