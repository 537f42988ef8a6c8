#include "codingtools/artifact_lines.h"

#include <catch2/catch.hpp>

using namespace stitchkit;

namespace {

std::vector<ArtifactMatch> lines(const std::string& text, const std::string& query, std::size_t most = 100) {
  return matchingLines(text, query, most, {}).value();
}

}  // namespace

TEST_CASE("matching lines: by number, each once, the first of more") {
  const auto found = lines("one two two\ntwo\nthree\ntwo", "two");
  REQUIRE(found.size() == 3);
  CHECK(found[0].line == 1);
  CHECK(found[0].text == "one two two");
  CHECK(found[1].line == 2);
  CHECK(found[2].line == 4);
  CHECK(found[2].text == "two");
  CHECK(lines("a\na\na\n", "a", 2).size() == 2);
  CHECK(lines("a\n", "b").empty());
  CHECK(lines("", "b").empty());
  CHECK(lines("a.b\naxb\n", "a.b").size() == 1);
}

TEST_CASE("matching lines: a query with a newline stands in no line") {
  CHECK(lines("a\nb\n", "a\nb").empty());
  CHECK(lines("a\nb\n", "\n").empty());
}

TEST_CASE("matching lines: wherever the text is cut into pieces") {
  // The pieces are of 4 MiB: the query stands across their border, and numbers go on behind it.
  std::string text;
  while (text.size() < 4U * 1024 * 1024 - 3) {
    text += "x\n";
  }
  const auto before = static_cast<std::int64_t>(text.size() / 2);
  text += "needle\n" + std::string(5U * 1024 * 1024, 'y') + "\nneedle";
  const auto found = lines(text, "needle");
  REQUIRE(found.size() == 2);
  CHECK(found[0].line == before + 1);
  CHECK(found[1].line == before + 3);
}

TEST_CASE("matching lines: a long line is shown around the match, cut between characters") {
  std::string line;
  for (int i = 0; i < 10000; ++i) {
    line += "\u20ac";
  }
  for (const std::string& text : {line + "needle", "needle" + line, line + "needle" + line}) {
    const auto found = lines(text, "needle");
    REQUIRE(found.size() == 1);
    CHECK(found[0].text.find("needle") != std::string::npos);
    CHECK(found[0].text.size() <= kMatchTextBytes + 3);
    CHECK(found[0].text.find("\ufffd") == std::string::npos);
  }
  CHECK(lines("\xff needle", "needle")[0].text == "\ufffd needle");
}

TEST_CASE("matching lines: a long query is in the part that is shown") {
  const std::string query(8000, 'q');
  const auto found = lines(std::string(9001, 'x') + query + std::string(9001, 'y'), query);
  REQUIRE(found.size() == 1);
  CHECK(found[0].text.find(query) != std::string::npos);
  CHECK(found[0].text.size() == kMatchTextBytes);
}

TEST_CASE("matching lines: a stop ends it") {
  std::stop_source stop;
  stop.request_stop();
  const auto found = matchingLines("a", "a", 1, stop.get_token());
  REQUIRE(!found.has_value());
  CHECK(found.error().kind == ErrorKind::kCancelled);
}
