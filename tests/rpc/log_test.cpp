// The log: lines that stay whole and harmless whatever they are made of, and never wait.
#include "rpc/base/log.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "rpc/base/log_line.h"
#include "rpc/base/utf8.h"
#include "tests/rpc/caught_stderr.h"

namespace stitchkit {
namespace {

using Json = nlohmann::json;
using testing::CaughtStderr;
using namespace std::chrono_literals;

Json only(CaughtStderr& caught) {
  const auto lines = caught.lines();
  REQUIRE(lines.size() == 1);
  return Json::parse(lines.front());
}

TEST_CASE("log: an event as text", "[log]") {
  CaughtStderr caught;
  logEvent(LogLevel::kInfo, "command",
           {{"handle", "h1"}, {"exitCode", 0}, {"durationMs", 1.649}, {"warm", true}, {"count", std::uint64_t{7}}});
  logEvent(LogLevel::kWarning, "incident", {{"message", "a text, \"quoted\" and C:\\"}});
  logLine(LogLevel::kError, "for people");
  CHECK(caught.lines() == std::vector<std::string>{
                              "stitchkit-sandbox: info: command handle=h1 exitCode=0 durationMs=1.6 warm=true count=7",
                              R"(stitchkit-sandbox: warning: incident message="a text, \"quoted\" and C:\\")",
                              R"(stitchkit-sandbox: error: note message="for people")"});
}

TEST_CASE("log: an event as JSON", "[log]") {
  CaughtStderr caught(LogFormat::kJson);
  logEvent(LogLevel::kInfo, "command",
           {{"handle", "h1"}, {"exitCode", -1}, {"durationMs", 1.649}, {"warm", false}, {"count", ~std::uint64_t{0}}});
  Json line = only(caught);
  const std::string time = line.at("time");
  CHECK(line.erase("time") == 1);
  CHECK(line == Json::parse(R"({"level":"info","event":"command","handle":"h1","exitCode":-1,"durationMs":1.6,
                                "warm":false,"count":18446744073709551615})"));
  // RFC 3339, UTC, of this minute or so.
  REQUIRE(time.size() == 24);
  CHECK(time.find_first_not_of("0123456789-:.TZ") == std::string::npos);
  std::tm parsed{};
  REQUIRE(::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%S", &parsed) == time.c_str() + 19);
  CHECK(std::abs(std::difftime(::timegm(&parsed), std::time(nullptr))) < 60);
}

TEST_CASE("log: milliseconds have three digits", "[log]") {
  LogLineText line(LogFormat::kJson, LogLevel::kInfo, "x", 1'767'225'600'007);
  CHECK(Json::parse(line.finish(0)).at("time") == "2026-01-01T00:00:00.007Z");
}

TEST_CASE("log: absent values and empty texts are left out", "[log]") {
  CaughtStderr caught;
  logEvent(LogLevel::kInfo, "x",
           {{"a", ""}, {"b", std::optional<int>()}, {"c", std::optional<int>(3)}, {"d", std::string_view()}});
  CHECK(caught.text() == "stitchkit-sandbox: info: x c=3\n");
}

TEST_CASE("log: lines above the level are not written", "[log]") {
  CaughtStderr caught;
  setLogLevel(LogLevel::kWarning);
  CHECK_FALSE(logEnabled(LogLevel::kInfo));
  logEvent(LogLevel::kInfo, "x", {});
  logEvent(LogLevel::kWarning, "y", {});
  setLogLevel(LogLevel::kDebug);
  logEvent(LogLevel::kDebug, "z", {});
  CHECK(caught.text() == "stitchkit-sandbox: warning: y\nstitchkit-sandbox: debug: z\n");
}

std::string bytesBetween(int first, int last) {
  std::string bytes;
  for (int i = first; i <= last; ++i) {
    bytes.push_back(static_cast<char>(i));
  }
  return bytes;
}

const std::vector<std::string> kHostileTexts{
    bytesBetween(0, 127),
    bytesBetween(128, 255),
    std::string("nul\0inside", 10),
    "line\nstitchkit-sandbox: error: forged",
    "\x1b]0;title\x07\x1b[2J",
    "\xc2\x9b"
    "2J",                // CSI of C1
    "\xed\xa0\x80",      // a surrogate
    "\xf4\x90\x80\x80",  // beyond Unicode
    "cut \xe2\x82",      // an unfinished character
    "\",\"level\":\"error\",\"x\":\"",
    "a=b c=\"d",
    "\xe2\x80\xa8 and \xe2\x80\xa9",                           // separators of lines and paragraphs
    "\xe2\x80\xaegnp.exe \xe2\x81\xa6 \xe2\x80\x8f \xd8\x9c",  // text in the other direction
    "\xf0\x9f\x8e\x89 \xc3\xa9",                               // what is fine
};

TEST_CASE("log: no bytes forge a line, drive a terminal, or break JSON", "[log]") {
  for (const std::string& text : kHostileTexts) {
    CAPTURE(text);
    for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
      CaughtStderr caught(format);
      logEvent(LogLevel::kInfo, "x", {{"host", text}, {"last", 1}});
      const auto lines = caught.lines();
      REQUIRE(lines.size() == 1);
      const std::string& line = lines.front();
      CHECK(isUtf8(line));
      for (std::size_t i = 0; i < line.size(); ++i) {
        const auto byte = static_cast<unsigned char>(line[i]);
        CHECK((byte >= 0x20 && byte != 0x7f));
        CHECK_FALSE((byte == 0xc2 && static_cast<unsigned char>(line[i + 1]) < 0xa0));
      }
      for (const char* misleading :
           {"\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x80\x8f", "\xd8\x9c"}) {
        CHECK(line.find(misleading) == std::string::npos);
      }
      if (format == LogFormat::kJson) {
        const Json parsed = Json::parse(line);
        CHECK(parsed.at("host") == toUtf8(text));
        CHECK(parsed.size() == 5);
        CHECK(parsed.at("level") == "info");
      } else {
        CHECK(line.ends_with(" last=1"));
      }
    }
  }
}

TEST_CASE("log: a line has at most 4096 bytes and is whole, however long its texts are", "[log]") {
  // Each of these takes another number of bytes as it is written: cuts fall anywhere in it.
  for (const std::string& unit : {std::string("x"), std::string("\""), std::string("\x01"), std::string("\xe2\x82\xac"),
                                  std::string("\xf0\x9f\x8e\x89"), std::string("\xff")}) {
    std::string text;
    while (text.size() < 100'000) {
      text += unit;
    }
    for (std::size_t shift = 0; shift < 8; ++shift) {
      CAPTURE(unit, shift);
      for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
        CaughtStderr caught(format);
        const std::string shifted = std::string(shift, '.') + text;
        std::vector<LogField> fields{{"message", shifted}};
        for (int i = 0; i < 12; ++i) {
          fields.emplace_back("field", shifted);
          fields.emplace_back("number", -1'000'000'000'000LL);
        }
        logEvent(LogLevel::kInfo, "x", fields);
        const std::string all = caught.text();
        REQUIRE(all.size() <= 4096);
        CHECK(all.size() > 3500);
        CHECK(all.find('\n') == all.size() - 1);
        CHECK(isUtf8(all));
        if (format == LogFormat::kJson) {
          CHECK(Json::parse(all).at("truncated") == true);
          CHECK(Json::parse(all).at("message").get<std::string>().ends_with("..."));
        } else {
          CHECK(all.ends_with(" truncated=true\n"));
        }
      }
    }
  }
}

TEST_CASE("log: a text that is cut does not take the place of the others", "[log]") {
  CaughtStderr caught(LogFormat::kJson);
  const std::string far(100'000, 'x');
  logEvent(LogLevel::kInfo, "x", {{"executable", far}, {"outcome", "exited"}, {"exitCode", 3}});
  const Json line = only(caught);
  CHECK(line.at("outcome") == "exited");
  CHECK(line.at("exitCode") == 3);
  CHECK(line.at("executable").get<std::string>().size() < 600);
}

TEST_CASE("log: nobody reads, and nobody waits; the next line says how many were dropped", "[log]") {
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    CaughtStderr caught(format);
    const LogCounts before = logCounts();
    caught.fill();
    for (int i = 0; i < 5; ++i) {
      logEvent(LogLevel::kInfo, "lost", {{"number", i}});
    }
    CHECK(logCounts().dropped == before.dropped + 5);
    CHECK(logCounts().written == before.written);
    caught.text();
    logEvent(LogLevel::kInfo, "found", {});
    logEvent(LogLevel::kInfo, "more", {});
    const auto lines = caught.lines();
    REQUIRE(lines.size() == 2);
    if (format == LogFormat::kJson) {
      CHECK(Json::parse(lines[0]).at("dropped") == 5);
      CHECK_FALSE(Json::parse(lines[1]).contains("dropped"));
    } else {
      CHECK(lines[0] == "stitchkit-sandbox: info: found dropped=5");
      CHECK(lines[1] == "stitchkit-sandbox: info: more");
    }
    CHECK(logCounts().written == before.written + 2);
  }
}

TEST_CASE("log: lines of many threads stay apart", "[log]") {
  CaughtStderr caught(LogFormat::kJson);
  const LogCounts before = logCounts();
  constexpr int kThreads = 4;
  constexpr int kLines = 50;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([i] {
      for (int j = 0; j < kLines; ++j) {
        logEvent(LogLevel::kInfo, "x", {{"thread", i}, {"line", j}, {"pad", std::string(100, 'p')}});
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const auto lines = caught.lines();
  for (const std::string& line : lines) {
    CHECK(Json::parse(line).at("pad") == std::string(100, 'p'));
  }
  const LogCounts after = logCounts();
  CHECK(lines.size() == after.written - before.written);
  CHECK(after.written + after.dropped == before.written + before.dropped + kThreads * kLines);
}

TEST_CASE("log: a budget lets a burst through, then so many a second, and tells what it left out", "[log]") {
  LogBudget budget(3, 10);
  auto now = std::chrono::steady_clock::time_point(1h);
  const std::uint64_t before = logCounts().suppressed;
  for (int i = 0; i < 3; ++i) {
    const auto verdict = budget.take(now);
    CHECK(verdict.write);
    CHECK(verdict.suppressed == 0);
  }
  for (int i = 0; i < 4; ++i) {
    CHECK_FALSE(budget.take(now).write);
  }
  CHECK(logCounts().suppressed == before + 4);
  now += 100ms;
  const auto verdict = budget.take(now);
  CHECK(verdict.write);
  CHECK(verdict.suppressed == 4);
  CHECK_FALSE(budget.take(now).write);
  // However long nothing came: no more than the burst.
  now += 24h;
  int written = 0;
  while (budget.take(now).write) {
    ++written;
  }
  CHECK(written == 3);
}

}  // namespace
}  // namespace stitchkit
