#include "codingtools/literal_edit.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace stitchkit;

namespace {

std::string edited(const std::string& content, const std::string& oldText, const std::string& newText,
                   bool all = false) {
  return replaceLiteral(content, oldText, newText, all).value().content;
}

std::int64_t occurrences(const Error& error) {
  return std::get<std::int64_t>(error.details.front().second);
}

}  // namespace

TEST_CASE("replacement text is literal, whatever it holds") {
  for (const std::string& text :
       std::vector<std::string>{"<$&> $$ $1 $' $` $<x>", "\\0 \\1 \\n", "done done", "", std::string("\0\xFF", 2)}) {
    CHECK(edited("log(done)", "done", text) == "log(" + text + ")");
  }
  CHECK(edited("a.b*[c] axb", "a.b*[c]", "x") == "x axb");
  CHECK(edited("aaa", "a", "aa", true) == "aaaaaa");
}

TEST_CASE("occurrences are counted from the front and do not overlap") {
  CHECK(edited("aaaaa", "aa", "b", true) == "bba");
  CHECK(edited("aaa", "aa", "b") == "ba");
  CHECK(replaceLiteral("x x x", "x", "y", true)->replacements == 3);
  const Error several = replaceLiteral("x x x", "x", "y", false).error();
  CHECK(several.kind == ErrorKind::kConflict);
  CHECK(occurrences(several) == 3);
  CHECK_FALSE(several.hint.empty());
}

TEST_CASE("only the matched bytes change") {
  const std::string content =
      "\xEF\xBB\xBF"
      "x\r\ny\nz\r\n w";
  CHECK(edited(content, "y", "Y") ==
        "\xEF\xBB\xBF"
        "x\r\nY\nz\r\n w");
  CHECK(edited(content,
               "\xEF\xBB\xBF"
               "x",
               "v") == "v\r\ny\nz\r\n w");
  CHECK(edited(content, " w", "") ==
        "\xEF\xBB\xBF"
        "x\r\ny\nz\r\n");
}

TEST_CASE("what was nearly found is said") {
  const auto hint = [](const char* content, const char* oldText) {
    const Error error = replaceLiteral(content, oldText, "n", false).error();
    CHECK(error.kind == ErrorKind::kNotFound);
    CHECK(occurrences(error) == 0);
    return error.hint;
  };
  CHECK_THAT(hint("a\r\nb\r\n", "a\nb"), Catch::Contains("line ends") && Catch::Contains("\\r\\n"));
  CHECK_THAT(hint("a\nb\n", "a\r\nb"), Catch::Contains("line ends"));
  CHECK_THAT(hint("\tif (x)\n\t\ty();\n", "if (x)\n    y();"), Catch::Contains("white space"));
  CHECK_THAT(hint("hello", "q"), Catch::Contains("exactly") && !Catch::Contains("white space"));
  CHECK_THAT(hint("", "q"), Catch::Contains("exactly"));
  CHECK_THAT(hint("abc", "\r"), Catch::Contains("exactly"));
}
