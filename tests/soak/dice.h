// Choices that a seed repeats. (What the machine does at the same time it does not repeat.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace stitchkit::soak {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}

  /// 0 to `count` - 1; `count` is not 0.
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(engine_() % count); }
  bool oneIn(std::size_t count) { return below(count) == 0; }

  /// Lines of letters and digits, `bytes` bytes in all.
  std::string text(std::size_t bytes) {
    std::string made(bytes, '\n');
    for (std::size_t at = 0; at < bytes;) {
      std::uint64_t bits = engine_();
      const std::size_t word = 1 + below(40);
      for (std::size_t end = at + word; at < end && at < bytes; ++at) {
        made[at] = "abcdefghijklmnopqrstuvwxyz012345"[bits & 31U];
        bits = bits >> 5U | bits << 59U;
      }
      ++at;
    }
    return made;
  }

  template <class Container>
  auto& oneOf(Container& choices) {
    return choices[below(choices.size())];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace stitchkit::soak
