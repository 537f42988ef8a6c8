// An input that holds several texts: they are separated by bytes 0xFF, which stand in no UTF-8.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace stitchkit::fuzz {

/// The first `count` texts; the last one holds the rest, and those that are missing are empty.
template <std::size_t count>
std::array<std::string_view, count> fields(std::string_view input) {
  std::array<std::string_view, count> texts;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    const std::size_t end = input.find('\xFF');
    texts[i] = input.substr(0, end);
    input = end == std::string_view::npos ? std::string_view() : input.substr(end + 1);
  }
  texts[count - 1] = input;
  return texts;
}

}  // namespace stitchkit::fuzz
