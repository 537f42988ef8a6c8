// A folder that stands for `/`, with files of /proc as another machine would have them.
#pragma once

#include <string>
#include <string_view>

#include "tests/support/scratch.h"

namespace stitchkit::testing {

/// Begins as a machine on which nothing is wrong: an ordinary kernel, no container.
class FakeRoot {
 public:
  FakeRoot();
  [[nodiscard]] const std::string& path() const { return folder_.path(); }
  /// Writes a file, `path` from the fake root on; folders are made, an older file is replaced.
  void write(std::string_view path, std::string_view text, unsigned mode = 0644) const;
  void remove(std::string_view path) const;

 private:
  ScratchFolder folder_;
};

}  // namespace stitchkit::testing
