// How full a bounded queue is, for who watches the sidecar.
#pragma once

#include <algorithm>
#include <cstdint>

namespace stitchkit {

/// One unit for all three: items, or bytes.
struct QueueState {
  std::uint64_t depth = 0;
  std::uint64_t highWater = 0;  ///< the largest depth since the start
  std::uint64_t limit = 0;      ///< where further ones are refused, or wait
};

/// The largest of the values that it was shown. One thread, or under its owner's lock.
class HighWater {
 public:
  void see(std::uint64_t value) noexcept { most_ = std::max(most_, value); }
  [[nodiscard]] std::uint64_t value() const noexcept { return most_; }

 private:
  std::uint64_t most_ = 0;
};

}  // namespace stitchkit
