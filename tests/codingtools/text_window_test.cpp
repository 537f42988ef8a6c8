#include "codingtools/text_window.h"

#include "tests/codingtools/test_files.h"

#include <sys/mman.h>

#include <string>

using namespace stitchkit;
using namespace stitchkit::test;

namespace {

/// A file of its own for each window.
class Content {
 public:
  explicit Content(const std::string& bytes) : file_(::memfd_create("content", MFD_CLOEXEC)) {
    REQUIRE(::pwrite(file_.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  }
  [[nodiscard]] Result<TextWindow> window(std::uint64_t offset, std::size_t maxBytes) const {
    return readTextWindow(file_.get(), offset, maxBytes);
  }

 private:
  UniqueFd file_;
};

const std::string kMixed = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z";  // characters of 1, 2, 3, 4 and 1 bytes

}  // namespace

TEST_CASE("windows follow each other without a gap, whatever their size") {
  for (std::size_t size = 0; size <= kMixed.size() + 1; ++size) {
    CAPTURE(size);
    const Content content(kMixed);
    std::string all;
    std::uint64_t offset = 0;
    for (;;) {
      const TextWindow window = content.window(offset, size).value();
      all += window.text;
      if (!window.truncated) {
        break;
      }
      REQUIRE_FALSE(window.text.empty());
      REQUIRE(window.end == offset + window.text.size());
      offset = window.end;
    }
    CHECK(all == kMixed);
  }
}

TEST_CASE("an offset inside a character starts at the next one") {
  const Content content(kMixed);
  for (const auto& [offset, text] : std::vector<std::pair<std::uint64_t, std::string>>{{1, kMixed.substr(1)},
                                                                                       {2, kMixed.substr(3)},
                                                                                       {4, kMixed.substr(6)},
                                                                                       {5, kMixed.substr(6)},
                                                                                       {7, "z"},
                                                                                       {9, "z"},
                                                                                       {10, "z"},
                                                                                       {11, ""},
                                                                                       {12, ""},
                                                                                       {9007199254740991U, ""},
                                                                                       {UINT64_MAX, ""}}) {
    CAPTURE(offset);
    const TextWindow window = content.window(offset, 100).value();
    CHECK(window.text == text);
    CHECK_FALSE(window.truncated);
  }
}

TEST_CASE("only the bytes of the window have to be text") {
  CHECK(Content("abc\xFF").window(0, 2)->text == "ab");
  CHECK(Content("\xFF"
                "abc")
            .window(1, 10)
            ->text == "abc");
  CHECK(Content("a\xE2\x82").window(0, 1)->text == "a");
  for (const auto& [bytes, offset, size] :
       std::vector<std::tuple<std::string, std::uint64_t, std::size_t>>{{"a\xFF"
                                                                         "b",
                                                                         0, 10},
                                                                        {"a\xE2"
                                                                         "ABC",
                                                                         0, 2},
                                                                        {"ab\xE2\x82", 2, 1},
                                                                        {"ab\xE2\x82", 2, 2},
                                                                        {std::string(20, '\x80'), 1, 30},
                                                                        {"\xED\xA0\x80", 0, 1}}) {
    CAPTURE(bytes, offset, size);
    const Result<TextWindow> window = Content(bytes).window(offset, size);
    REQUIRE_FALSE(window.has_value());
    CHECK(window.error().kind == ErrorKind::kBadRequest);
  }
}

TEST_CASE("a window costs its own size, not the file's") {
  const UniqueFd big(::memfd_create("big", MFD_CLOEXEC));
  REQUIRE(::ftruncate(big.get(), off_t{1} << 40) == 0);
  const TextWindow window = readTextWindow(big.get(), off_t{1} << 39, 100).value();
  CHECK(window.text == std::string(100, '\0'));
  CHECK(window.truncated);
}
