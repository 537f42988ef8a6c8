// How many bytes of large request bodies a handle's gateway holds at once.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

namespace stitchkit {

/// First come, first served, so that a large body is not passed over for ever. Whoever has its share can finish, so
/// that nobody waits for somebody who waits. One thread.
class BodyBudget {
 public:
  explicit BodyBudget(std::uint64_t bytes) : bytes_(bytes) {}

  /// Takes `bytes`, now or later; more than all there is when nobody else holds any.
  /// @return true when they are taken; otherwise `granted` is called once they are.
  bool take(const void* owner, std::uint64_t bytes, std::function<void()> granted);
  /// Gives back, and no longer waits.
  void giveBack(const void* owner, std::uint64_t bytes);

 private:
  struct Waiter {
    const void* owner;
    std::uint64_t bytes;
    std::function<void()> granted;
  };

  [[nodiscard]] bool fits(std::uint64_t bytes) const { return held_ == 0 || held_ + bytes <= bytes_; }

  std::uint64_t bytes_;
  std::uint64_t held_ = 0;
  std::deque<Waiter> waiting_;
};

}  // namespace stitchkit
