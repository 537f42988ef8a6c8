// One input in pieces of whatever size: what a parser makes of it must not depend on them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <random>
#include <string_view>
#include <vector>

namespace stitchkit::testing {

using Pieces = std::vector<std::string_view>;

inline Pieces piecesOf(std::string_view bytes, const std::function<std::size_t()>& nextSize) {
  Pieces pieces;
  while (!bytes.empty()) {
    const std::size_t size = std::clamp<std::size_t>(nextSize(), 1, bytes.size());
    pieces.push_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return pieces;
}

/// All at once, byte by byte, in reads of 16 KiB, and some random ways that are the same in every run.
inline std::vector<Pieces> slicings(std::string_view bytes, unsigned randomWays = 6) {
  std::vector<Pieces> all{{bytes}, piecesOf(bytes, [] { return 16U * 1024; })};
  if (bytes.size() <= 64U * 1024) {
    all.push_back(piecesOf(bytes, [] { return 1U; }));
  }
  std::mt19937 random(static_cast<unsigned>(bytes.size()));
  for (unsigned i = 0; i < randomWays; ++i) {
    const unsigned most = i % 2 == 0 ? 7 : static_cast<unsigned>(bytes.size() / 2 + 2);
    all.push_back(piecesOf(bytes, [&] { return std::uniform_int_distribution<unsigned>(1, most)(random); }));
  }
  return all;
}

}  // namespace stitchkit::testing
