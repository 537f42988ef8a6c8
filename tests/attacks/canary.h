// A folder of the host that no tool may reach, however a guest's links lead there.
#pragma once

#include "tests/support/scratch.h"

#include <map>
#include <string>
#include <string_view>

namespace stitchkit::testing {

/// Holds `file`, `sub/file` and a file with a telling name, each with a text that stands nowhere else. Everybody may
/// read and write in it: if anything comes there, nothing but the sidecar's care would have stopped it.
class Canary {
 public:
  Canary();

  [[nodiscard]] const std::string& path() const { return folder_.path(); }
  /// The same as a relative link's target, from any depth.
  [[nodiscard]] std::string relativePath() const;
  /// What `file` holds.
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Whether text, names or place of the folder stand in it.
  [[nodiscard]] bool shownBy(std::string_view answer) const;
  /// Nothing in it was changed, added or removed.
  [[nodiscard]] bool untouched() const { return now() == before_; }

 private:
  [[nodiscard]] std::map<std::string, std::string> now() const;

  ScratchFolder folder_;
  std::string text_;
  std::string name_;
  std::map<std::string, std::string> before_;  ///< path to content
};

}  // namespace stitchkit::testing
