#include "codingtools/line_search.h"

#include <re2/re2.h>

#include <catch2/catch.hpp>

#include <random>
#include <string>
#include <thread>
#include <vector>

#include "codingtools/script_expression.h"

using namespace stitchkit;

namespace {

using Syntax = LineSearch::Syntax;

LineSearch compiled(const std::string& query, Syntax syntax) {
  return LineSearch::compile(query, syntax).value();
}

std::vector<std::size_t> numbers(const std::string& query, Syntax syntax, const std::string& text,
                                 std::size_t most = 1000) {
  std::vector<std::size_t> found;
  for (const FoundLine& line : compiled(query, syntax).search(text, most).lines) {
    found.push_back(line.number);
  }
  return found;
}

using Numbers = std::vector<std::size_t>;

/// What the search is to find: line by line, each a text of its own.
class Naive {
 public:
  Naive(const std::string& query, Syntax syntax) : query_(query) {
    if (syntax == Syntax::kExpression) {
      re2::RE2::Options options;
      options.set_log_errors(false);
      expression_ = std::make_unique<re2::RE2>(toRe2Syntax(query).value(), options);
    }
  }

  [[nodiscard]] bool matches(const std::string& line) const {
    if (!expression_) {
      return line.find(query_) != std::string::npos;
    }
    return re2::RE2::PartialMatch(line, *expression_) ||
           (line.ends_with('\r') && re2::RE2::PartialMatch(line.substr(0, line.size() - 1), *expression_));
  }

  [[nodiscard]] std::vector<FoundLine> search(const std::string& text, std::size_t most) const {
    std::vector<FoundLine> found;
    std::size_t number = 1;
    for (std::size_t begin = 0; begin <= text.size() && found.size() < most; ++number) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      if (matches(text.substr(begin, end - begin))) {
        found.push_back({number, begin, end});
      }
      begin = end + 1;
    }
    return found;
  }

 private:
  std::string query_;
  std::unique_ptr<re2::RE2> expression_;
};

bool same(const std::vector<FoundLine>& left, const std::vector<FoundLine>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), [](const auto& a, const auto& b) {
    return a.number == b.number && a.begin == b.begin && a.end == b.end;
  });
}

std::string randomText(std::mt19937& random, const std::vector<std::string>& parts, std::size_t count) {
  std::string text;
  for (std::size_t i = random() % (count + 1); i > 0; --i) {
    text += parts[random() % parts.size()];
  }
  return text;
}

/// An expression that RE2 accepts.
std::string randomExpression(std::mt19937& random, int depth = 0) {
  static const std::vector<std::string> kAtoms{
      "a",   "b",   "_",   "X",   "\\d", "[a-c]",    "[^a]", ".",   "^",       "$",      "\\b",    "\\B",    "\\s",
      "\\S", "\\w", "\\n", "\\r", "aX",  "\xC3\xA9", "\\W",  "[^]", "\\u00e9", "(?i:x)", "(?s:.)", "(?m:^)", "(?-m:$)"};
  static const std::vector<std::string> kRepeats{"", "", "", "*", "+", "?", "{2}", "{0,2}", "*?", "{1,}", "{0}"};
  std::string expression;
  for (std::size_t i = 1 + random() % 4; i > 0; --i) {
    std::string part = kAtoms[random() % kAtoms.size()];
    if (depth < 2 && random() % 6 == 0) {
      part = (random() % 2 == 0 ? "(" : "(?:") + randomExpression(random, depth + 1) + ")";
    }
    const bool single = part.back() == ')' || part.size() == 1 || part.front() == '\\' || part.front() == '[';
    expression += part + (single && part != "^" && part != "$" ? kRepeats[random() % kRepeats.size()] : "");
    if (random() % 12 == 0) {
      expression += "|";
    }
  }
  return expression;
}

}  // namespace

TEST_CASE("literals are found line by line") {
  CHECK(numbers("two", Syntax::kLiteral, "one\ntwo\ntwo two\n") == Numbers{2, 3});
  CHECK(numbers("TWO", Syntax::kLiteral, "one\ntwo\n").empty());
  CHECK(numbers("a\nb", Syntax::kLiteral, "a\nb").empty());
  CHECK(numbers("x", Syntax::kLiteral, "").empty());
  CHECK(numbers("two", Syntax::kLiteral, "one\rtwo\r") == Numbers{1});
  CHECK(numbers(std::string("\0h", 2), Syntax::kLiteral, std::string("a\0hit", 5)) == Numbers{1});
  CHECK(numbers("-e", Syntax::kLiteral, "x -e y") == Numbers{1});
  CHECK(numbers("x", Syntax::kLiteral, "x\nx\nx\n", 2) == Numbers{1, 2});
  CHECK(numbers("x", Syntax::kLiteral, "x\nx\nx\n", 0).empty());
}

TEST_CASE("anchors stand at the ends of lines, carriage return or not") {
  CHECK(numbers("^hit$", Syntax::kExpression, "hit\r\nhit\n hit\nhit") == Numbers{1, 2, 4});
  CHECK(numbers("hit\\r$", Syntax::kExpression, "hit\r\nhit\n") == Numbers{1});
  CHECK(numbers("^$", Syntax::kExpression, "a\n\nb\n") == Numbers{2, 4});
  CHECK(numbers("^$", Syntax::kExpression, "") == Numbers{1});
  CHECK(numbers("a\\nb", Syntax::kExpression, "a\nb").empty());
  CHECK(numbers("a[^x]b", Syntax::kExpression, "a\nb\na b").size() == 1);
  CHECK(numbers("(?s)a.b", Syntax::kExpression, "a\nb").empty());
}

TEST_CASE("an expression that RE2 refuses is a bad request in RE2's words") {
  for (const std::string& query : {std::string("[a"), std::string("a{1001}"), std::string("((a{100}){100}){100}"),
                                   std::string("\\pL{900}"), std::string("\xFF")}) {
    const Result<LineSearch> refused = LineSearch::compile(query, Syntax::kExpression);
    REQUIRE(refused.has_error());
    CHECK(refused.error().kind == ErrorKind::kBadRequest);
    REQUIRE(refused.error().details.size() == 2);
    CHECK(refused.error().details[0].first == "pattern");
    CHECK(std::get<std::string>(refused.error().details[0].second) == query);
    CHECK(refused.error().details[1].first == "reason");
    CHECK_FALSE(std::get<std::string>(refused.error().details[1].second).empty());
    CHECK_FALSE(refused.error().hint.empty());
  }
  CHECK(LineSearch::compile("(t)\\1", Syntax::kExpression).error().kind == ErrorKind::kBadRequest);
}

TEST_CASE("lines over 8192 UTF-16 units are passed over, and it is said that they matched") {
  const auto search = [](const std::string& text) { return compiled("hit", Syntax::kLiteral).search(text, 10); };
  const std::string x(8189, 'x');
  std::string euros;
  std::string faces;
  for (int i = 0; i < 8189; ++i) {
    euros += "\xE2\x82\xAC";
    faces += i % 2 == 0 ? "\xF0\x9F\x98\x80" : "";
  }
  CHECK(search(x + "hit").lines.size() == 1);
  CHECK_FALSE(search(x + "hit").longLines);
  CHECK(search(euros + "hit").lines.size() == 1);
  CHECK(search(faces + "hit").lines.empty());
  CHECK(search(x + "xhit").longLines);
  CHECK_FALSE(search(x + "xxxx\n").longLines);
  const LinesFound after = search(x + "xhit\nhit");
  REQUIRE(after.lines.size() == 1);
  CHECK(after.lines[0].number == 2);
  for (const char* expression : {"hi[t]", "[h]it|Q", "(?-m:h)i[t]"}) {
    const LinesFound found = compiled(expression, Syntax::kExpression).search(x + "xhit\nhit", 10);
    CHECK(found.longLines);
    CHECK(found.lines.size() == 1);
  }
}

TEST_CASE("context is what stands around a line") {
  const std::string text = "l1\nl2\nl3 hit\nl4\n";
  const FoundLine line = compiled("hit", Syntax::kLiteral).search(text, 1).lines.at(0);
  CHECK(linesBefore(text, line, 1) == std::vector<std::string>{"l2"});
  CHECK(linesBefore(text, line, 9) == std::vector<std::string>{"l1", "l2"});
  CHECK(linesAfter(text, line, 1) == std::vector<std::string>{"l4"});
  CHECK(linesAfter(text, line, 9) == std::vector<std::string>{"l4", ""});
  CHECK(linesBefore("\nhit", {2, 1, 4}, 3) == std::vector<std::string>{""});
  CHECK(linesAfter("hit", {1, 0, 3}, 3).empty());
}

TEST_CASE("alternatives are found wherever they stand") {
  const std::string text = "x\nTODO a\n" + std::string(5000, '-') + "\nFIXME\nTODO FIXME\nTOD\n";
  CHECK(numbers("TODO|FIXME", Syntax::kExpression, text) == Numbers{2, 4, 5});
  CHECK(numbers("(?:TODO|FIXME)$", Syntax::kExpression, text) == Numbers{4, 5});
}

TEST_CASE("an expression that needs many steps a byte can be stopped") {
  std::string text;
  std::mt19937 random(9);
  for (int i = 0; i < 200000; ++i) {
    text += i % 8000 == 7999 ? '\n' : "ab"[random() % 2];
  }
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  const LineSearch search = compiled("(?:[ab]?[ab]?[ab]?){300}a[ab]{300}c", Syntax::kExpression);
  CHECK(search.search(text, 10, stop.get_token()).lines.empty());
}

TEST_CASE("a whole text matches or not") {
  CHECK(compiled("src/d", Syntax::kLiteral).matches("src/d/e.ts"));
  CHECK(compiled("^src/.*\\.ts$", Syntax::kExpression).matches("src/c.ts"));
  CHECK_FALSE(compiled("^src/.*\\.ts$", Syntax::kExpression).matches("a/src/c.tsx"));
}

TEST_CASE("searching finds exactly what matching line by line finds") {
  const std::vector<std::string> parts{"a",  "b",  "a",    "_",        "X",  "1", "12", " ",
                                       "\n", "\n", "\r\n", "\xC3\xA9", "aX", "c", "\r", "\xF0\x9F\x98\x80"};
  std::mt19937 random(6);
  std::size_t found = 0;
  for (int i = 0; i < 6000; ++i) {
    const bool expression = random() % 4 != 0;
    const std::string query = expression ? randomExpression(random) : randomText(random, parts, 3);
    const Syntax syntax = expression ? Syntax::kExpression : Syntax::kLiteral;
    if (query.empty() && !expression) {
      continue;
    }
    CAPTURE(query);
    const Result<LineSearch> search = LineSearch::compile(query, syntax);
    REQUIRE(search.has_value());
    const Naive naive(query, syntax);
    for (int j = 0; j < 6; ++j) {
      const std::string text = randomText(random, parts, j > 0 ? 60 : i % 50 == 0 ? 60000 : 2000);
      const std::size_t most = j == 1 ? 2 : 100000;
      const LinesFound lines = search->search(text, most);
      found += lines.lines.size();
      CAPTURE(text);
      REQUIRE(same(lines.lines, naive.search(text, most)));
    }
  }
  CHECK(found > 100000);
}
