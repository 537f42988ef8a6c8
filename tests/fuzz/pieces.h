// Sizes of the pieces that an input is fed in, from one byte of it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stitchkit::fuzz {

class Pieces {
 public:
  static Pieces whole() { return {static_cast<std::size_t>(-1), 0}; }
  static Pieces ofOne() { return {1, 0}; }
  /// Up to `seed` bytes each, no two alike in a row.
  explicit Pieces(std::uint8_t seed) : Pieces(1, seed) {}

  std::size_t next() {
    const std::size_t size = size_;
    if (seed_ != 0) {
      state_ = state_ * 1103515245U + 12345U;
      size_ = 1 + (state_ >> 16U) % seed_;
    }
    return size;
  }

 private:
  Pieces(std::size_t size, std::uint8_t seed) : size_(size), seed_(seed), state_(seed) {}

  std::size_t size_;
  std::uint8_t seed_;
  std::uint32_t state_;
};

}  // namespace stitchkit::fuzz
