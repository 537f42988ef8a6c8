#include "rpc/frame_decoder.h"

#include <malloc.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <ostream>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rpc/base/limits.h"

namespace stitchkit {

static std::ostream& operator<<(std::ostream& out, const FrameEvent& event) {
  static constexpr const char* kNames[] = {"message", "too large", "bad header", "cut off"};
  return out << kNames[static_cast<int>(event.kind)] << " " << event.text.size() << " '" << event.text.substr(0, 60)
             << "'";
}

static bool operator==(const FrameEvent& a, const FrameEvent& b) {
  return a.kind == b.kind && a.text == b.text;
}

namespace {

FrameEvent message(std::string text) {
  return {FrameEvent::Kind::kMessage, std::move(text)};
}
const FrameEvent kTooLarge{FrameEvent::Kind::kTooLarge, {}};
const FrameEvent kBadHeader{FrameEvent::Kind::kBadHeader, {}};
const FrameEvent kCutOff{FrameEvent::Kind::kCutOff, {}};

std::string framed(std::string_view body) {
  return "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

std::string repeated(std::string_view text, int times) {
  std::string whole;
  for (int i = 0; i < times; ++i) {
    whole += text;
  }
  return whole;
}

/// One stream and what it must give, however it is sliced.
struct Stream {
  const char* what;
  Framing framing;
  std::string bytes;
  std::vector<FrameEvent> expected;
  std::size_t maxBytes = 1000;
};

/// Feeds `bytes` in pieces whose sizes `next` gives.
template <class NextSize>
std::vector<FrameEvent> decode(const Stream& stream, NextSize next) {
  FrameDecoder decoder(stream.framing, stream.maxBytes);
  std::vector<FrameEvent> events;
  for (std::string_view rest = stream.bytes; !rest.empty();) {
    const std::size_t size = std::min<std::size_t>(next(), rest.size());
    decoder.feed(rest.substr(0, size), events);
    rest.remove_prefix(size);
  }
  decoder.end(events);
  return events;
}

void checkAllSlicings(const Stream& stream) {
  INFO(stream.what);
  CHECK(decode(stream, [] { return std::string::npos; }) == stream.expected);
  CHECK(decode(stream, [] { return 1; }) == stream.expected);
  std::mt19937 random(20240601);
  for (int round = 0; round < 200; ++round) {
    std::uniform_int_distribution<std::size_t> size(1, round % 2 == 0 ? 7 : 400);
    const auto events = decode(stream, [&] { return size(random); });
    INFO("random slicing " << round);
    REQUIRE(events == stream.expected);
  }
}

const std::string kA = R"({"jsonrpc":"2.0","id":1,"method":"a"})";
const std::string kB = R"({"jsonrpc":"2.0","id":2,"method":"b"})";
const std::string kBom = "\xEF\xBB\xBF";

}  // namespace

TEST_CASE("lines: one frame each, however the bytes come", "[framing]") {
  const Framing lines = GENERATE(Framing::kLines, Framing::kAuto);
  const std::vector<Stream> streams = {
      {"plain lines", lines, kA + "\n" + kB + "\n", {message(kA), message(kB)}},
      {"a last line without its newline counts", lines, kA + "\n" + kB, {message(kA), message(kB)}},
      {"a torn last line is handed on, to be refused as JSON", lines, kA + "\n{\"a", {message(kA), message("{\"a")}},
      {"blank lines", lines, "\n\r\n \t \n" + kA + "\n\n   \r\n\n" + kB + "\n\n", {message(kA), message(kB)}},
      {"nothing", lines, "", {}},
      {"blanks only", lines, " \r\n\t\n ", {}},
      {"two values on a line are one frame", lines, kA + kB + "\n", {message(kA + kB)}},
      {"a batch", lines, "[" + kA + "," + kB + "]\n", {message("[" + kA + "," + kB + "]")}},
      {"NUL and bytes that are no UTF-8 are not the decoder's business",
       lines,
       std::string("{\0\xFF}\n", 5) + kA + "\n",
       {message(std::string("{\0\xFF}", 4)), message(kA)}},
  };
  for (const Stream& stream : streams) {
    checkAllSlicings(stream);
  }
}

TEST_CASE("lines: a carriage return before the newline belongs to the end of the line", "[framing]") {
  for (const Framing framing : {Framing::kLines, Framing::kAuto}) {
    Stream stream{"crlf", framing, kA + "\r\n" + kB + "\r\n", {}};
    std::vector<FrameEvent> events = decode(stream, [] { return 3; });
    REQUIRE(events.size() == 2);
    // White space after a value is JSON; what matters is that nothing else was added or lost.
    CHECK(events[0].text.substr(0, kA.size()) == kA);
    CHECK(events[0].text.find_first_not_of('\r', kA.size()) == std::string::npos);
    CHECK(events[1].text.substr(0, kB.size()) == kB);
    stream.expected = std::move(events);
    checkAllSlicings(stream);
  }
}

TEST_CASE("a byte-order mark is skipped at the very start and nowhere else", "[framing]") {
  const std::vector<Stream> streams = {
      {"before a line", Framing::kAuto, kBom + kA + "\n" + kB + "\n", {message(kA), message(kB)}},
      {"before a line, lines asked for", Framing::kLines, kBom + kA + "\n", {message(kA)}},
      {"before a blank line", Framing::kAuto, kBom + "\n" + kA + "\n", {message(kA)}},
      {"before headers", Framing::kAuto, kBom + framed(kA), {message(kA)}},
      {"before headers, headers asked for", Framing::kHeaders, kBom + framed(kA), {message(kA)}},
      {"alone", Framing::kAuto, kBom, {}},
      {"twice", Framing::kAuto, kBom + kBom + kA + "\n" + kB + "\n", {message(kBom + kA), message(kB)}},
      {"before the second line", Framing::kAuto, kA + "\n" + kBom + kB + "\n", {message(kA), message(kBom + kB)}},
      {"after a blank line", Framing::kAuto, "\n" + kBom + kA + "\n", {message(kBom + kA)}},
      {"after a mark and a blank line", Framing::kLines, kBom + "\n" + kBom + kA + "\n", {message(kBom + kA)}},
      {"half of one", Framing::kAuto, "\xEF\xBB" + kA + "\n" + kB + "\n", {message("\xEF\xBB" + kA), message(kB)}},
      {"half of one and the end", Framing::kAuto, "\xEF\xBB", {message("\xEF\xBB")}},
      {"half of one and a newline", Framing::kAuto, "\xEF\n" + kB, {message("\xEF"), message(kB)}},
  };
  for (const Stream& stream : streams) {
    checkAllSlicings(stream);
  }
}

TEST_CASE("lines: an oversized frame is reported once and the next one is read", "[framing]") {
  const std::string exact = "\"" + std::string(98, 'x') + "\"";  // 100 bytes
  const std::string over = "\"" + std::string(99, 'x') + "\"";
  const std::string far(5000, 'y');
  const std::vector<Stream> streams = {
      {"at the limit", Framing::kLines, exact + "\n", {message(exact)}, 100},
      {"one over", Framing::kLines, over + "\n" + kA + "\n", {kTooLarge, message(kA)}, 100},
      {"far over, then another",
       Framing::kAuto,
       "{" + far + "\n{" + far + "\n" + kA,
       {kTooLarge, kTooLarge, message(kA)},
       100},
      {"over, and the stream ends", Framing::kLines, far, {kTooLarge}, 100},
      {"blanks over the limit",
       Framing::kLines,
       kA + "\n" + std::string(101, ' ') + "\n",
       {message(kA), kTooLarge},
       100},
      {"a limit below a byte-order mark", Framing::kLines, "\xEF\xBB{}\n1\n", {kTooLarge, message("1")}, 1},
  };
  for (const Stream& stream : streams) {
    checkAllSlicings(stream);
  }
}

TEST_CASE("lines: the line's end does not count towards its size", "[framing]") {
  const std::string exact = "\"" + std::string(98, 'x') + "\"";
  checkAllSlicings({"at the limit with CR LF",
                    Framing::kLines,
                    exact + "\r\n" + exact + "\n",
                    {message(exact + "\r"), message(exact)},
                    100});
  checkAllSlicings({"one over with CR LF", Framing::kLines, exact + "x\r\n1\n", {kTooLarge, message("1")}, 100});
  checkAllSlicings({"a CR that ends no line", Framing::kLines, exact + "\rx\n1\n", {kTooLarge, message("1")}, 100});
}

TEST_CASE("headers: frames by length", "[framing]") {
  const Framing headers = GENERATE(Framing::kHeaders, Framing::kAuto);
  const std::string multiLine = "{\n \"a\": 1\r\n}\n";
  const std::vector<Stream> streams = {
      {"two frames", headers, framed(kA) + framed(kB), {message(kA), message(kB)}},
      {"newlines in a body", headers, framed(multiLine) + framed(kB), {message(multiLine), message(kB)}},
      {"further headers and case",
       headers,
       "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-LENGTH:37\r\n\r\n" + kA + framed(kB),
       {message(kA), message(kB)}},
      {"bare newlines", headers, "Content-Length:  37  \n\n" + kA + framed(kB), {message(kA), message(kB)}},
      {"blank lines between frames", headers, framed(kA) + "\r\n\n\r\n" + framed(kB), {message(kA), message(kB)}},
      {"blanks before the first", headers, "\r\n " + framed(kA), {message(kA)}},
      {"an empty body is a frame (and no JSON)", headers, framed("") + framed(kB), {message(""), message(kB)}},
      {"leading zeros", headers, "Content-Length: 00037\r\n\r\n" + kA, {message(kA)}},
      {"a body that ends early", headers, framed(kA) + "Content-Length: 99\r\n\r\n" + kB, {message(kA), kCutOff}},
      {"a first body that ends early", headers, "Content-Length: 99\r\n\r\n" + kB, {kCutOff}},
      {"a header that ends early", headers, framed(kA) + "Content-Le", {message(kA), kCutOff}},
      {"a body over the limit that ends early", headers, "Content-Length: 9999\r\n\r\n" + kB, {kTooLarge}},
      {"too large by one",
       headers,
       framed(std::string(1001, 'x')) + framed(std::string(1000, 'y')),
       {kTooLarge, message(std::string(1000, 'y'))}},
      {"beyond 64 bits", headers, "Content-Length: 99999999999999999999\r\n\r\n" + kA, {kTooLarge}},
  };
  for (const Stream& stream : streams) {
    checkAllSlicings(stream);
  }
}

TEST_CASE("headers: a fault is reported once, and reading goes on at the next Content-Length", "[framing]") {
  // What vscode-jsonrpc sends: no newline after a body, so that the next header stands right behind it.
  const std::string next = framed(kB);
  const std::vector<std::pair<const char*, std::string>> faults = {
      {"a length that is no number", "Content-Length: abc\r\n\r\n" + kA},
      {"no length at all", "Content-Length:\r\n\r\n" + kA},
      {"a negative length", "Content-Length: -37\r\n\r\n" + kA},
      {"a sign", "Content-Length: +37\r\n\r\n" + kA},
      {"a fraction", "Content-Length: 37.0\r\n\r\n" + kA},
      {"two lengths", "Content-Length: 37\r\nContent-Length: 37\r\n\r\n" + kA},
      {"a block without a length", "Content-Type: json\r\n\r\n" + kA},
      {"a line that is no header", "{oops}\r\n"},
      {"a space in the name", "Content-Length : 37\r\n\r\n" + kA},
      {"a block that is too large", "X-Pad: " + std::string(5000, 'p') + "\r\n\r\n" + kA},
      {"a block of too many lines", repeated("X-Pad: 1\r\n", 600) + "\r\n"},
      {"more lines than a block may have, and no end", repeated("A: b\r\n", 5000)},
      {"a folded header", "Content-Length:\r\n 37\r\n\r\n" + kA},
      {"a hexadecimal length", "Content-Length: 0x25\r\n\r\n" + kA},
      {"three lengths", repeated("Content-Length: 37\r\n", 3) + "\r\n" + kA},
      {"a bad length, then a good one", "Content-Length: x\r\nContent-Length: 37\r\n\r\n" + kA},
      {"a space in the name, then a good length", "Content-Length : 37\r\nContent-Length: 37\r\n\r\n" + kA},
      {"a good length, then a line that is no header", "Content-Length: 37\r\noops\r\n\r\n" + kA},
      {"a line that ends in blanks where the block ends its room",
       "X-Pad: " + std::string(limits::kFrameHeaderBytes - 7, 'p') + std::string(200, ' ') + "\r\nA: b\r\n\r\n"},
      {"a length one byte short: the rest is no header", "Content-Length: 36\r\n\r\n" + kA},
  };
  for (const auto& [what, bytes] : faults) {
    std::vector<FrameEvent> expected = {message(kA), kBadHeader, message(kB), message(kA)};
    if (bytes.find(": 36") != std::string::npos) {
      expected.insert(expected.begin() + 1, message(kA.substr(0, 36)));
    }
    checkAllSlicings({what, Framing::kHeaders, framed(kA) + bytes + next + framed(kA), expected});
    checkAllSlicings({what, Framing::kAuto, framed(kA) + bytes + next + framed(kA), expected});
    if (bytes.front() != '{') {  // which would be a JSON line
      checkAllSlicings({what, Framing::kAuto, bytes + next + framed(kA), {expected.begin() + 1, expected.end()}});
    }
  }
}

TEST_CASE("headers: a length that is one too large costs one more frame", "[framing]") {
  const std::string eaten = "Content-Length: 38\r\n\r\n" + kA + framed(kB);
  checkAllSlicings({"38 for 37",
                    Framing::kHeaders,
                    eaten + framed(kA) + framed(kB),
                    {message(kA + "C"), kBadHeader, message(kA), message(kB)}});
}

TEST_CASE("headers: the very first block may be faulty too", "[framing]") {
  checkAllSlicings({"explicit", Framing::kHeaders, "hello\r\n" + framed(kA), {kBadHeader, message(kA)}});
  checkAllSlicings({"a JSON line in between", Framing::kHeaders, kA + "\n" + framed(kB), {kBadHeader, message(kB)}});
}

TEST_CASE("auto: a stray word before the first message decides nothing", "[framing]") {
  const std::string longWord(6000, 'w');
  const std::vector<Stream> streams = {
      {"a word", Framing::kAuto, "hello\n" + kA + "\n" + kB + "\n", {kBadHeader, message(kA), message(kB)}},
      {"two words", Framing::kAuto, "hello\nworld\n" + kA + "\n", {kBadHeader, kBadHeader, message(kA)}},
      {"a word, then headers",
       Framing::kAuto,
       "hello\r\n" + framed(kA) + framed(kB),
       {kBadHeader, message(kA), message(kB)}},
      {"a word that looks like a header",
       Framing::kAuto,
       "warning: x\n" + kA + "\n" + kB,
       {kBadHeader, message(kA), message(kB)}},
      {"a longer line than a header may be", Framing::kAuto, longWord + "\n" + kA + "\n", {kBadHeader, message(kA)}},
      {"such a line with a colon", Framing::kAuto, "w: " + longWord + "\n" + kA + "\n", {kBadHeader, message(kA)}},
      {"such a line and the end", Framing::kAuto, longWord, {kBadHeader}},
      {"a word and the end", Framing::kAuto, "hello", {kBadHeader}},
      {"a byte-order mark behind it", Framing::kAuto, "hello\n" + kBom + kA + "\n", {kBadHeader, message(kBom + kA)}},
      {"once headers have worked they stay",
       Framing::kAuto,
       framed(kA) + "hello\n" + kA + "\n" + framed(kB),
       {message(kA), kBadHeader, message(kB)}},
  };
  for (const Stream& stream : streams) {
    checkAllSlicings(stream);
  }
}

TEST_CASE("auto: the first byte that is not blank decides", "[framing]") {
  const auto decided = [](std::string_view bytes, Framing asked = Framing::kAuto) {
    FrameDecoder decoder(asked, 1000);
    std::vector<FrameEvent> events;
    decoder.feed(bytes, events);
    return decoder.framing();
  };
  CHECK(decided("") == Framing::kAuto);
  CHECK(decided("\r\n \t") == Framing::kAuto);
  CHECK(decided(kBom) == Framing::kAuto);
  CHECK(decided("{") == Framing::kLines);
  CHECK(decided(kBom + "[") == Framing::kLines);
  CHECK(decided("1") == Framing::kLines);
  CHECK(decided("\"") == Framing::kLines);
  CHECK(decided("C") == Framing::kHeaders);
  CHECK(decided("\n c") == Framing::kHeaders);
  CHECK(decided("hello\n") == Framing::kAuto);
  CHECK(decided("warning: x\n{") == Framing::kLines);
  CHECK(decided("hello\r\n{") == Framing::kLines);
  CHECK(decided("C", Framing::kLines) == Framing::kLines);
  CHECK(decided("{", Framing::kHeaders) == Framing::kHeaders);
  // A word under lines is a line like any other, to be refused as JSON.
  checkAllSlicings({"lines asked for", Framing::kLines, "hello\n" + kA + "\n", {message("hello"), message(kA)}});
}

TEST_CASE("auto: what is reported of a bad header block is reported under headers", "[framing]") {
  for (const std::string& block : {
           std::string("Content-Length: x\r\n\r\n"),
           std::string("Content-Length: +5\r\n\r\n"),
           std::string("Content-Length: 0x5d\r\n\r\n"),
           std::string("Content-Length : 5\r\n\r\n"),
           std::string("Content-Length 5\r\n\r\n"),
           std::string("Content-Length:\r\n 5\r\n\r\n"),
           std::string("Content-Length: 5\r\nContent-Length: 5\r\n\r\n"),
           std::string("Content-Length: x\n\n"),
           std::string("Content-Type: json\r\n\r\n"),
           std::string(5000, 'A') + "\r\n\r\n",
           repeated("A: b\r\n", 5000) + "Content-Length: 37\r\n",
       }) {
    INFO(block.substr(0, 60));
    FrameDecoder decoder(Framing::kAuto, 1000);
    std::vector<FrameEvent> events;
    for (const char c : block) {
      decoder.feed({&c, 1}, events);
      if (events.empty()) {
        continue;
      }
      REQUIRE(decoder.framing() == Framing::kHeaders);
    }
    CHECK(events == std::vector{kBadHeader});
    decoder.feed("{\n", events);  // for good
    CHECK(decoder.framing() == Framing::kHeaders);
  }
  for (const char* torn : {"Content-Length: 5\r\n\r\nabc", "Content-Length: 5", "Content-Length: x\r\n"}) {
    INFO(torn);
    FrameDecoder decoder(Framing::kAuto, 1000);
    std::vector<FrameEvent> events;
    decoder.feed(torn, events);
    decoder.end(events);
    CHECK(events.size() == 1);
    CHECK(decoder.framing() == Framing::kHeaders);
  }
}

TEST_CASE("what is skipped is not kept", "[framing]") {
  constexpr std::size_t kLimit = 1024U * 1024;
  const auto heldWhile = [](FrameDecoder& decoder, const std::string& chunk, int times) {
    std::vector<FrameEvent> events;
    const auto live = [] {
      const struct mallinfo2 info = ::mallinfo2();
      return info.uordblks + info.hblkhd;
    };
    const std::size_t before = live();
    std::size_t most = 0;
    for (int i = 0; i < times; ++i) {
      decoder.feed(chunk, events);
      const std::size_t now = live();
      most = std::max(most, now - std::min(now, before));
    }
    CHECK(events.size() <= 1);
    return most;
  };
  const std::string chunk(64U * 1024, 'z');

  FrameDecoder lines(Framing::kLines, kLimit);
  CHECK(heldWhile(lines, chunk, 1024) < 3 * kLimit);
  FrameDecoder headers(Framing::kHeaders, kLimit);
  std::vector<FrameEvent> events;
  headers.feed("Content-Length: 99999999999\r\n\r\n", events);
  CHECK(heldWhile(headers, chunk, 1024) < 64U * 1024);
  FrameDecoder endlessHeader(Framing::kHeaders, kLimit);
  CHECK(heldWhile(endlessHeader, chunk, 1024) < 64U * 1024);
  FrameDecoder endlessBlock(Framing::kAuto, kLimit);
  CHECK(heldWhile(endlessBlock, repeated("A: b\r\n", 10000), 100) < 64U * 1024);
  FrameDecoder endlessWord(Framing::kAuto, kLimit);
  CHECK(heldWhile(endlessWord, chunk, 1024) < 64U * 1024);
}

}  // namespace stitchkit
