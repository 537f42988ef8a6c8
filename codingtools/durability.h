// What of that which is written outlives a loss of power.
#pragma once

#include <cstdint>

namespace stitchkit {

/// Asked at each step that gives a file or a directory its name. What was answered outlives the death of the process at
/// every level, since files appear whole, by a rename. A value; thread-safe. Blocks on the disk.
class Durability {
 public:
  enum class Level : std::uint8_t {
    kProcess,   ///< nothing is forced to the disk: after a loss of power a file may be the old one, or missing
    kFile,      ///< content comes before the name: what has a new name has its new content
    kDirectory  ///< names as well: what was answered is there
  };

  constexpr Durability() noexcept = default;
  constexpr explicit Durability(Level level) noexcept : level_(level) {}

  /// Content and mode of a file, before it gets its name or after it was overwritten in its place. 0 or errno.
  [[nodiscard]] int settleFile(int file) const;
  /// All of a tree that was made, before it gets its name. `descriptor`: of anything on its file system, not O_PATH. 0
  /// or errno.
  [[nodiscard]] int settleTree(int descriptor) const;
  /// The entries of a directory that were changed. `directory`: O_PATH too; `beside`: as for settleTree(), for a
  /// directory that may not be read. 0 or errno.
  [[nodiscard]] int settleEntries(int directory, int beside) const;

 private:
  Level level_ = Level::kProcess;
};

}  // namespace stitchkit
