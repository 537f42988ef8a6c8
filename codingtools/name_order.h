// The order of names within a directory, for whatever lists or walks one.
#pragma once

#include <cstdint>
#include <string_view>

namespace stitchkit {

/// ICU's root collation, which is that of en-US, normalisation on; names equal there by their bytes. A total order of
/// all byte sequences: what is not UTF-8 counts as U+FFFD until bytes decide. Without ICU's data it is that of bytes.
/// Thread-safe.
class NameOrder {
 public:
  /// Made at the first call, which takes milliseconds.
  static const NameOrder& instance();

  /// Negative, 0 (only for the same bytes) or positive.
  [[nodiscard]] int compare(std::string_view left, std::string_view right) const;

  /// How a name begins, for comparing most names by two numbers: where both are not kNoPrefix and differ, their order
  /// is that of the names. Else ask compare().
  [[nodiscard]] std::uint64_t prefix(std::string_view name) const;
  static constexpr std::uint64_t kNoPrefix = ~std::uint64_t{0};

 private:
  NameOrder();

  /// Ranks of the first differing kind, both names being printable ASCII; 0 when they are equal.
  [[nodiscard]] int compareAscii(std::string_view left, std::string_view right) const;
  [[nodiscard]] bool isSimple(std::string_view name) const;

  std::uint8_t primary_[256] = {};   ///< rank of a character whatever its case, from 1; 0: ask ICU
  std::uint8_t tertiary_[256] = {};  ///< rank among those of one primary rank
};

}  // namespace stitchkit
