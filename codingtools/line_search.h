// Which lines of a text match: the searcher of one file.
#pragma once

#include "codingtools/literal_finder.h"
#include "rpc/base/error.h"

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace stitchkit {

/// A line of a text, without its `\n`, with its `\r`.
struct FoundLine {
  std::size_t number = 0;  ///< from 1
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct LinesFound {
  std::vector<FoundLine> lines;
  bool longLines = false;  ///< lines matched that are too long to be searched
};

/// A literal or a regular expression. Lines end at `\n`; behind the last one is one more, which may be empty. Each line
/// is matched for itself: `^` and `$` stand at its ends, `$` also before a `\r` there. Lines over 8192 UTF-16 units are
/// passed over. The text should be UTF-8; other bytes may match or not, and do no harm. Immutable, thread-safe.
class LineSearch {
 public:
  static constexpr std::size_t kMaxLineUnits = 8192;

  enum class Syntax : bool { kLiteral, kExpression };

  /// kBadRequest with `details.pattern` for an expression that cannot be searched for, with `details.reason` in RE2's
  /// words when it was RE2 that refused it.
  static Result<LineSearch> compile(std::string_view query, Syntax syntax);

  /// The first `most` lines; fewer when stopped, which takes effect within a part of a text.
  [[nodiscard]] LinesFound search(std::string_view text, std::size_t most, const std::stop_token& stop = {}) const;

  /// Whether it stands in a text as a whole, such as a path.
  [[nodiscard]] bool matches(std::string_view text) const;

 private:
  class Lines;

  explicit LineSearch(std::vector<std::string> literals);

  void searchLiteral(Lines& lines) const;
  void searchCandidates(Lines& lines) const;
  void searchWhole(Lines& lines) const;
  void searchEachLine(Lines& lines) const;
  [[nodiscard]] bool matchesLine(std::string_view line) const;

  std::vector<LiteralFinder> literals_;  ///< the query, or one of which every match of the expression contains, or none
  std::shared_ptr<const re2::RE2> expression_;
  bool wholeTexts_ = true;  ///< the expression finds the same in a text as line by line
  bool hasEndAnchor_ = false;
};

/// The lines before and after one, at most `count` each, in their order.
std::vector<std::string> linesBefore(std::string_view text, const FoundLine& line, std::size_t count);
std::vector<std::string> linesAfter(std::string_view text, const FoundLine& line, std::size_t count);

}  // namespace stitchkit
