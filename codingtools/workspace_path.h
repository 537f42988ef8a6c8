// A path inside a workspace, as a type: whoever holds one holds a path that cannot name anything outside by its text.
// (What symbolic links do to it is the business of ContainedDirectory.)
#pragma once

#include "rpc/base/error.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace stitchkit {

/// An immutable value; safe to share between threads. Rules: PROTOCOL.md, section 5.
class WorkspacePath {
 public:
  /// Accepts `dir/file` and `/workspace/dir/file`; `.` and `/workspace` are the root. Everything else is kPath:
  /// the empty text, empty, `.` and `..` segments, a trailing slash, a backslash, NUL, any other absolute path.
  /// Length is no matter here: a path that is too long for the kernel can be named, but not opened (tooLong()).
  static Result<WorkspacePath> parse(std::string_view text);

  /// The workspace's root.
  static WorkspacePath root() { return WorkspacePath(std::string()); }

  /// `/workspace/dir/file`; `/workspace` for the root.
  [[nodiscard]] std::string canonical() const;
  /// `dir/file`; "" for the root.
  [[nodiscard]] const std::string& relative() const noexcept { return relative_; }
  [[nodiscard]] bool isRoot() const noexcept { return relative_.empty(); }
  /// The directory that holds it. The root is its own parent.
  [[nodiscard]] WorkspacePath parent() const;
  /// The last segment; "" for the root.
  [[nodiscard]] std::string_view name() const noexcept;
  /// Whether the kernel would refuse it inside a guest: a segment over 255 bytes, or over 4095 bytes in canonical form.
  [[nodiscard]] bool tooLong() const noexcept;

  friend bool operator==(const WorkspacePath&, const WorkspacePath&) = default;

 private:
  explicit WorkspacePath(std::string relativeText) : relative_(std::move(relativeText)) {}

  std::string relative_;
};

}  // namespace stitchkit
