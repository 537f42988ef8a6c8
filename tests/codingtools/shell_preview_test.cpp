#include "codingtools/shell_preview.h"

#include <catch2/catch.hpp>

#include <string>

using namespace stitchkit;

namespace {

std::string repeat(const char* unit, int count) {
  std::string text;
  for (; count > 0; --count) {
    text += unit;
  }
  return text;
}

struct Row {
  std::string standardOutput;
  std::string standardError;
  std::size_t budget;
  std::string wantedOutput;
  std::string wantedError;
  std::size_t head;
  std::size_t tail;
  std::size_t omitted;
};

const std::string kLong = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789ABCDEF";
const std::string kThree = repeat("abcdefghijklmnopqrstuvwxyz", 3);
const std::string kEuro = "\xE2\x82\xAC";
const std::string kFace = "\xF0\x9F\x98\x80";

}  // namespace

TEST_CASE("previews are head and tail, as the golden cases have them") {
  const std::vector<Row> rows{
      {"00000000", "", 8, "00000000", "", 8, 0, 0},
      {kLong, "", 7, "0123DEF", "", 4, 3, 71},
      {"", kLong, 8, "", "0123CDEF", 4, 4, 70},
      {"", kLong, 9, "", "01234CDEF", 5, 4, 69},
      {"ok", kThree, 7, "ok", "abz", 4, 1, 75},
      {"ok", kThree, 64, "ok", "abcdefghijklmnopklmnopqrstuvwxyz", 18, 16, 46},
      {repeat(kEuro.c_str(), 25), "", 7, kEuro + kEuro + kEuro, "", 6, 3, 66},
      {repeat(kEuro.c_str(), 25), "", 8, kEuro + kEuro + kEuro, "", 6, 3, 66},
      {repeat("\xC3\xA9", 35), "", 9, repeat("\xC3\xA9", 5), "", 6, 4, 60},
      {repeat(kFace.c_str(), 20), "", 7, kFace, "", 4, 0, 76},
      {repeat(kFace.c_str(), 20), "", 9, kFace + kFace + kFace, "", 8, 4, 68},
      {repeat(kFace.c_str(), 20), repeat(kFace.c_str(), 20), 7, kFace, kFace, 8, 0, 152},
      {repeat(kFace.c_str(), 20), repeat(kFace.c_str(), 20), 16, kFace + kFace, kFace + kFace, 8, 8, 144},
      {repeat(kFace.c_str(), 3), "", 1, kFace, "", 4, 0, 8},
  };
  for (const Row& row : rows) {
    CAPTURE(row.standardOutput, row.standardError, row.budget);
    const ShellPreview preview = previewOf(row.standardOutput, row.standardError, row.budget);
    CHECK(preview.standardOutput == row.wantedOutput);
    CHECK(preview.standardError == row.wantedError);
    CHECK(preview.headBytes == row.head);
    CHECK(preview.tailBytes == row.tail);
    CHECK(preview.omittedBytes == row.omitted);
  }
}

TEST_CASE("a preview of what is no text is text, and every byte is accounted for") {
  for (std::size_t budget = 0; budget < 12; ++budget) {
    for (const std::string& output : {std::string("\xFF\xFE\xE2\x82 ab \xF0\x9F", 9), repeat("\x80", 11)}) {
      CAPTURE(budget);
      const ShellPreview preview = previewOf(output, "", budget);
      CHECK(preview.headBytes + preview.tailBytes + preview.omittedBytes == output.size());
      CHECK(preview.standardOutput.find('\xFF') == std::string::npos);
    }
  }
}
