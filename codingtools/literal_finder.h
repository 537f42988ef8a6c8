// Finding a text in a larger one, fast.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stitchkit {

/// How rare a byte is in texts and programs: 0 for a space, up to 255. A guess that only speed depends on.
unsigned byteRarity(char byte) noexcept;

/// Looks for the two rarest bytes of the needle at their distance, many places at once, and compares the rest only
/// where both stand. Immutable, thread-safe.
class LiteralFinder {
 public:
  explicit LiteralFinder(std::string needle);

  /// Where the needle stands next at or after `from`, or npos. An empty needle stands everywhere.
  [[nodiscard]] std::size_t find(std::string_view text, std::size_t from) const noexcept;

  [[nodiscard]] const std::string& needle() const noexcept { return needle_; }

 private:
  std::string needle_;
  std::size_t first_ = 0;   ///< offset of one of the two bytes
  std::size_t second_ = 0;  ///< of the other one
};

}  // namespace stitchkit
