// The log: one event a line on stderr, for the operator. Never on stdout, never a secret, never blocking.
//
//   text   stitchkit-sandbox: info: command handle=h1 outcome=exited exitCode=0 durationMs=1.6
//   JSON   {"time":"2026-01-31T12:00:00.123Z","level":"info","event":"command","handle":"h1",...}
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace stitchkit {

enum class LogLevel : std::uint8_t { kError, kWarning, kInfo, kDebug };
enum class LogFormat : std::uint8_t { kText, kJson };

/// Lines above this level are dropped. Both are set once at start, before threads.
void setLogLevel(LogLevel level) noexcept;
void setLogFormat(LogFormat format) noexcept;
/// Whether a line of this level would be written.
[[nodiscard]] bool logEnabled(LogLevel level) noexcept;

/// A member of a line. `name` is ours and made of letters; a text may hold any bytes and only has to live as long as
/// the call. An absent value and an empty text are left out.
struct LogField {
  std::string_view name;
  std::variant<std::monostate, std::int64_t, std::uint64_t, double, bool, std::string_view> value;

  LogField(std::string_view fieldName, std::string_view text) : name(fieldName), value(text) {}
  LogField(std::string_view fieldName, const std::string& text) : name(fieldName), value(std::string_view(text)) {}
  LogField(std::string_view fieldName, const char* text) : name(fieldName), value(std::string_view(text)) {}
  LogField(std::string_view fieldName, bool flag) : name(fieldName), value(flag) {}
  LogField(std::string_view fieldName, double number) : name(fieldName), value(number) {}  ///< written with a tenth
  template <std::signed_integral T>
  LogField(std::string_view fieldName, T number) : name(fieldName), value(std::int64_t{number}) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) LogField(std::string_view fieldName, T number)
      : name(fieldName), value(std::uint64_t{number}) {}
  template <class T>
  LogField(std::string_view fieldName, const std::optional<T>& maybe) : name(fieldName) {
    if (maybe) {
      value = LogField(fieldName, *maybe).value;
    }
  }
};

/// Writes one line, of at most 4096 bytes: long texts are cut, and fields that have no room left are left out
/// (`truncated`). Thread-safe. When nobody reads stderr the line is dropped and counted rather than waited for, so that
/// a host that forgot to read stderr does not stop the protocol; the next line says how many were (`dropped`).
void logEvent(LogLevel level, std::string_view event, std::span<const LogField> fields) noexcept;
void logEvent(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) noexcept;

/// A sentence for people: the event `note` with a `message`.
void logLine(LogLevel level, std::string_view text) noexcept;

/// Since the start. Thread-safe.
struct LogCounts {
  std::uint64_t written = 0;
  std::uint64_t dropped = 0;     ///< nobody read stderr
  std::uint64_t suppressed = 0;  ///< left out by a LogBudget
};
[[nodiscard]] LogCounts logCounts() noexcept;

/// How many lines of one kind may be written, where somebody else than the operator decides how many there are.
/// Thread-safe.
class LogBudget {
 public:
  /// @param burst at once, @param perSecond after that.
  LogBudget(std::uint32_t burst, std::uint32_t perSecond) noexcept
      : burst_(burst), perSecond_(perSecond), left_(burst) {}

  struct Verdict {
    bool write;
    std::uint64_t suppressed;  ///< lines that were left out before this one, to be told with it
  };
  Verdict take() noexcept { return take(std::chrono::steady_clock::now()); }
  Verdict take(std::chrono::steady_clock::time_point now) noexcept;

 private:
  const double burst_;
  const double perSecond_;
  std::mutex mutex_;
  double left_;
  std::optional<std::chrono::steady_clock::time_point> last_;
  std::uint64_t suppressed_ = 0;
};

/// Milliseconds since `begin`, for a field.
[[nodiscard]] inline double millisecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace stitchkit
