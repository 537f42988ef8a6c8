#include "rpc/base/log.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>

#include "rpc/base/log_line.h"

namespace stitchkit {
namespace {

std::atomic<LogLevel> threshold{LogLevel::kInfo};
std::atomic<LogFormat> lineFormat{LogFormat::kText};
std::mutex lineMutex;
std::uint64_t droppedSince = 0;  // the last line that was written; guarded by lineMutex, as the two below
bool cutLine = false;            // only a part of the last one went out
LogCounts counts;
std::atomic<std::uint64_t> suppressedLines{0};

bool writable() noexcept {
  pollfd waiter{STDERR_FILENO, POLLOUT, 0};
  return ::poll(&waiter, 1, 0) == 1 && (waiter.revents & POLLOUT) != 0;
}

// @return whether all of it went out; `cutLine` when a part of it did.
bool writeBytes(std::string_view bytes) noexcept {
  ssize_t written = 0;
  do {
    written = ::write(STDERR_FILENO, bytes.data(), bytes.size());
  } while (written < 0 && errno == EINTR);
  cutLine = written > 0 && static_cast<std::size_t>(written) < bytes.size();
  return written == static_cast<ssize_t>(bytes.size());
}

void writeLine(LogLineText& line) noexcept {
  const std::lock_guard lock(lineMutex);
  // The rest of a line that only partly found room is lost, and the next one begins on a line of its own.
  if (writable() && (!cutLine || writeBytes("\n")) && writeBytes(line.finish(droppedSince))) {
    ++counts.written;
    droppedSince = 0;
    return;
  }
  ++counts.dropped;
  ++droppedSince;
}

}  // namespace

void setLogLevel(LogLevel level) noexcept {
  threshold = level;
}

void setLogFormat(LogFormat format) noexcept {
  lineFormat = format;
}

bool logEnabled(LogLevel level) noexcept {
  return level <= threshold.load(std::memory_order_relaxed);
}

void logEvent(LogLevel level, std::string_view event, std::span<const LogField> fields) noexcept {
  if (!logEnabled(level)) {
    return;
  }
  try {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    LogLineText line(lineFormat.load(std::memory_order_relaxed), level, event,
                     std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
    for (const LogField& field : fields) {
      line.add(field);
    }
    writeLine(line);
  } catch (...) {
    // Logging is best effort: without memory for a line there is none.
    return;
  }
}

void logEvent(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) noexcept {
  logEvent(level, event, std::span<const LogField>(fields.begin(), fields.size()));
}

void logLine(LogLevel level, std::string_view text) noexcept {
  logEvent(level, "note", {{"message", text}});
}

LogCounts logCounts() noexcept {
  const std::lock_guard lock(lineMutex);
  LogCounts now = counts;
  now.suppressed = suppressedLines.load(std::memory_order_relaxed);
  return now;
}

LogBudget::Verdict LogBudget::take(std::chrono::steady_clock::time_point now) noexcept {
  const std::lock_guard lock(mutex_);
  if (last_) {
    left_ = std::min(burst_, left_ + std::chrono::duration<double>(now - *last_).count() * perSecond_);
  }
  last_ = now;
  if (left_ < 1) {
    ++suppressed_;
    suppressedLines.fetch_add(1, std::memory_order_relaxed);
    return {false, 0};
  }
  left_ -= 1;
  return {true, std::exchange(suppressed_, 0)};
}

}  // namespace stitchkit
