// The globs of `glob`, `search_files` and `deniedPaths`.
#pragma once

#include "rpc/base/error.h"

#include <memory>
#include <string_view>

namespace re2 {
class RE2;
}

namespace stitchkit {

/// `**/` matches any directories or none, `**` anything, `*` anything but `/`, `?` one character but `/`; all else
/// stands for itself. Matching takes time linear in the path. Immutable, thread-safe.
class GlobPattern {
 public:
  /// kBadRequest for a pattern over 16 KiB, one that is too large to compile, or one that is not UTF-8.
  static Result<GlobPattern> compile(std::string_view pattern);

  /// `path` is UTF-8, segments joined by `/`; the whole of it has to match.
  [[nodiscard]] bool matches(std::string_view path) const;

 private:
  explicit GlobPattern(std::shared_ptr<const re2::RE2> expression) : expression_(std::move(expression)) {}

  std::shared_ptr<const re2::RE2> expression_;
};

}  // namespace stitchkit
