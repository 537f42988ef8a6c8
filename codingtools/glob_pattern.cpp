#include "codingtools/glob_pattern.h"

#include <re2/re2.h>

#include <string>

namespace stitchkit {

namespace {

/// RE2 takes long over more, and talks about it on stderr.
constexpr std::size_t kMaxPatternBytes = 16384;

std::string toExpression(std::string_view pattern) {
  std::string expression = "(?s)";
  while (!pattern.empty()) {
    std::size_t used = 1;
    if (pattern.substr(0, 3) == "**/") {
      expression += "(?:.*/)?";
      used = 3;
    } else if (pattern.substr(0, 2) == "**") {
      expression += ".*";
      used = 2;
    } else if (pattern.front() == '*') {
      expression += "[^/]*";
    } else if (pattern.front() == '?') {
      expression += "[^/]";
    } else {
      used = std::min(pattern.find_first_of("*?"), pattern.size());
      expression += re2::RE2::QuoteMeta(re2::StringPiece(pattern.data(), used));
    }
    pattern.remove_prefix(used);
  }
  return expression;
}

}  // namespace

Result<GlobPattern> GlobPattern::compile(std::string_view pattern) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_never_capture(true);
  std::shared_ptr<const re2::RE2> expression;
  if (pattern.size() <= kMaxPatternBytes) {
    expression = std::make_shared<const re2::RE2>(toExpression(pattern), options);
  }
  if (!expression || !expression->ok()) {
    return Error(ErrorKind::kBadRequest, "The pattern cannot be used")
        .withDetail("pattern", std::string(pattern.substr(0, 256)))
        .withHint("Use a shorter pattern of UTF-8 text; **, * and ? are special, nothing else.");
  }
  return GlobPattern(std::move(expression));
}

bool GlobPattern::matches(std::string_view path) const {
  return re2::RE2::FullMatch(re2::StringPiece(path.data(), path.size()), *expression_);
}

}  // namespace stitchkit
