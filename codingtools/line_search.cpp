#include "codingtools/line_search.h"

#include "codingtools/required_literal.h"
#include "codingtools/script_expression.h"
#include "rpc/base/limits.h"
#include "rpc/base/utf8.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace stitchkit {

namespace {

/// Lines with the required literal that did not match after which their distance decides how to go on.
constexpr std::size_t kProbedLines = 8;
/// Bytes to such a line below which matching the whole text is faster than looking for the literal first.
constexpr std::size_t kDenseBytes = 512;

/// What RE2 is given at once, since it cannot be stopped: so many bytes, fewer where a byte may cost many steps.
constexpr std::size_t kWindowBytes = 16UL * 1024;
constexpr std::size_t kWindowSteps = 128UL * 1024 * 1024;

std::size_t windowFor(const re2::RE2& expression) {
  const auto steps = static_cast<std::size_t>(std::max(1, expression.ProgramSize()));
  return std::min(kWindowBytes, kWindowSteps / steps);
}

re2::StringPiece piece(std::string_view text) {
  return {text.data(), text.size()};
}

bool tooLong(std::string_view line) {
  if (line.size() <= LineSearch::kMaxLineUnits) {
    return false;
  }
  // A character has a unit for its first byte, and one more when it has four.
  const auto units = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }) +
                     std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xF8) == 0xF0; });
  return static_cast<std::size_t>(units) > LineSearch::kMaxLineUnits;
}

/// Whether a flag group sets or clears what `^` and `$` mean.
bool changesAnchors(std::string_view expression) {
  for (std::size_t at = expression.find("(?"); at != std::string_view::npos; at = expression.find("(?", at + 2)) {
    const std::string_view flags = expression.substr(at + 2, expression.find_first_of(":)<", at) - at - 2);
    if (flags.find('m') != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

constexpr std::string_view kLineMode = "(?m)";

/// RE2's words, about the expression without what we put before it.
std::string reasonOf(const re2::RE2& expression) {
  std::string reason = excerpt(expression.error(), limits::kErrorTextCharacters);
  if (const std::size_t ours = reason.find(kLineMode); ours != std::string::npos) {
    reason.erase(ours, kLineMode.size());
  }
  return reason;
}

Result<std::shared_ptr<const re2::RE2>> compileExpression(std::string_view query, const std::string& expression) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_never_nl(true);
  options.set_never_capture(true);
  auto compiled = std::make_shared<const re2::RE2>(std::string(kLineMode) + expression, options);
  if (!compiled->ok()) {
    return Error(ErrorKind::kBadRequest, "The regular expression cannot be used")
        .withDetail("pattern", excerpt(query, limits::kErrorTextCharacters))
        .withDetail("reason", reasonOf(*compiled))
        .withHint(
            "Correct the expression (a repetition goes up to 1000), or search for the text itself with regex: false.");
  }
  return std::shared_ptr<const re2::RE2>(std::move(compiled));
}

/// Where one of several literals stands next.
class Occurrences {
 public:
  Occurrences(const std::vector<LiteralFinder>& literals, std::string_view text) : literals_(literals), text_(text) {}

  /// At or after `from`, which never goes back; or npos.
  std::size_t next(std::size_t from) {
    std::size_t first = std::string_view::npos;
    for (std::size_t i = 0; i < literals_.size(); ++i) {
      if (fresh_ || next_[i] < from) {
        next_[i] = literals_[i].find(text_, from);
      }
      first = std::min(first, next_[i]);
    }
    fresh_ = false;
    return first;
  }

 private:
  const std::vector<LiteralFinder>& literals_;
  std::string_view text_;
  std::array<std::size_t, kMostRequiredLiterals> next_{};
  bool fresh_ = true;
};

}  // namespace

LineSearch::LineSearch(std::vector<std::string> literals)
    : literals_(std::make_move_iterator(literals.begin()), std::make_move_iterator(literals.end())) {}

/// Goes through a text and keeps the lines that are found.
class LineSearch::Lines {
 public:
  Lines(std::string_view text, std::size_t most, const std::stop_token& stop) : text_(text), most_(most), stop_(stop) {}

  [[nodiscard]] std::string_view text() const { return text_; }
  /// Where the next line begins.
  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] bool done() const { return done_ || stop_.stop_requested(); }

  /// The line in which `place` stands, at or after position(). It is the last one when nothing follows.
  std::string_view lineAt(std::size_t place) {
    const std::size_t newline = place == 0 ? std::string_view::npos : text_.rfind('\n', place - 1);
    begin_ = newline == std::string_view::npos ? 0 : newline + 1;
    end_ = std::min(text_.find('\n', place), text_.size());
    return text_.substr(begin_, end_ - begin_);
  }

  /// Goes behind the line that lineAt() gave.
  void pass() {
    done_ = done_ || end_ == text_.size();
    position_ = end_ + 1;
  }

  /// Keeps the line that lineAt() gave, and goes behind it.
  void keep() {
    if (tooLong(text_.substr(begin_, end_ - begin_))) {
      found.longLines = true;
    } else {
      number_ += static_cast<std::size_t>(std::count(text_.data() + counted_, text_.data() + begin_, '\n'));
      counted_ = begin_;
      found.lines.push_back({number_, begin_, end_});
      done_ = found.lines.size() >= most_;
    }
    pass();
  }

  LinesFound found;

 private:
  std::string_view text_;
  std::size_t most_;
  const std::stop_token& stop_;
  std::size_t position_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t number_ = 1;  ///< of the line that begins at counted_
  std::size_t counted_ = 0;
  bool done_ = false;
};

Result<LineSearch> LineSearch::compile(std::string_view query, Syntax syntax) {
  if (syntax == Syntax::kLiteral) {
    return LineSearch({std::string(query)});
  }
  const Result<std::string> expression = toRe2Syntax(query);
  if (!expression) {
    return expression.error();
  }
  Result<std::shared_ptr<const re2::RE2>> compiled = compileExpression(query, *expression);
  if (!compiled) {
    return compiled.error();
  }
  LineSearch search(requiredLiterals(*expression));
  search.expression_ = std::move(*compiled);
  search.wholeTexts_ = !changesAnchors(*expression);
  search.hasEndAnchor_ = expression->find('$') != std::string::npos;
  return search;
}

LinesFound LineSearch::search(std::string_view text, std::size_t most, const std::stop_token& stop) const {
  Lines lines(text, most, stop);
  if (most == 0) {
    return {};
  }
  if (!expression_) {
    searchLiteral(lines);
    return std::move(lines.found);
  }
  if (!literals_.empty()) {
    searchCandidates(lines);
  }
  const bool carriageReturns = hasEndAnchor_ && text.find('\r') != std::string_view::npos;
  if (lines.done()) {
    return std::move(lines.found);
  }
  if (wholeTexts_ && !carriageReturns) {
    searchWhole(lines);
  } else {
    searchEachLine(lines);
  }
  return std::move(lines.found);
}

void LineSearch::searchLiteral(Lines& lines) const {
  const LiteralFinder& literal = literals_.front();
  if (literal.needle().find('\n') != std::string::npos) {
    return;
  }
  while (!lines.done()) {
    const std::size_t place = literal.find(lines.text(), lines.position());
    if (place == std::string_view::npos) {
      return;
    }
    lines.lineAt(place);
    lines.keep();
  }
}

/// Only the lines in which a required literal stands, while they are far apart; the rest is left for others.
void LineSearch::searchCandidates(Lines& lines) const {
  Occurrences occurrences(literals_, lines.text());
  std::size_t missed = 0;
  while (!lines.done() && (missed < kProbedLines || lines.position() / missed > kDenseBytes)) {
    const std::size_t place = occurrences.next(lines.position());
    if (place == std::string_view::npos) {
      lines.lineAt(lines.text().size());
      lines.pass();
    } else if (matchesLine(lines.lineAt(place))) {
      lines.keep();
    } else {
      ++missed;
      lines.pass();
    }
  }
}

/// Some lines at once. The first match is in the first line that matches, since none spans a line's end.
void LineSearch::searchWhole(Lines& lines) const {
  const std::string_view text = lines.text();
  const std::size_t window = windowFor(*expression_);
  std::size_t windowEnd = 0;
  re2::StringPiece found;
  while (!lines.done()) {
    if (lines.position() > windowEnd || windowEnd == 0) {
      windowEnd = std::min(text.find('\n', std::min(lines.position() + window, text.size())), text.size());
    }
    const bool matched = expression_->Match(piece(text), lines.position(), windowEnd, re2::RE2::UNANCHORED, &found, 1);
    lines.lineAt(matched ? static_cast<std::size_t>(found.data() - text.data()) : windowEnd);
    if (matched) {
      lines.keep();
    } else {
      lines.pass();
    }
  }
}

void LineSearch::searchEachLine(Lines& lines) const {
  while (!lines.done()) {
    if (matchesLine(lines.lineAt(lines.position()))) {
      lines.keep();
    } else {
      lines.pass();
    }
  }
}

bool LineSearch::matchesLine(std::string_view line) const {
  if (matches(line)) {
    return true;
  }
  return hasEndAnchor_ && line.ends_with('\r') && matches(line.substr(0, line.size() - 1));
}

bool LineSearch::matches(std::string_view text) const {
  return expression_ ? expression_->Match(piece(text), 0, text.size(), re2::RE2::UNANCHORED, nullptr, 0)
                     : literals_.front().find(text, 0) != std::string_view::npos;
}

std::vector<std::string> linesBefore(std::string_view text, const FoundLine& line, std::size_t count) {
  std::vector<std::string> lines;
  std::size_t begin = line.begin;
  while (lines.size() < count && begin > 0) {
    const std::size_t end = begin - 1;
    const std::size_t newline = end == 0 ? std::string_view::npos : text.rfind('\n', end - 1);
    begin = newline == std::string_view::npos ? 0 : newline + 1;
    lines.emplace_back(text.substr(begin, end - begin));
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

std::vector<std::string> linesAfter(std::string_view text, const FoundLine& line, std::size_t count) {
  std::vector<std::string> lines;
  std::size_t newline = line.end;
  while (lines.size() < count && newline < text.size()) {
    const std::size_t begin = newline + 1;
    newline = std::min(text.find('\n', begin), text.size());
    lines.emplace_back(text.substr(begin, newline - begin));
  }
  return lines;
}

}  // namespace stitchkit
