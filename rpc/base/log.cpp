#include "rpc/base/log.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <string>

namespace stitchkit {
namespace {

// POLLOUT on a pipe promises room for PIPE_BUF (4096) bytes: a line no longer than that does not block.
constexpr std::size_t kMaxLineBytes = 4096;

std::atomic<LogLevel> threshold{LogLevel::kInfo};
std::mutex lineMutex;
std::uint64_t droppedLines = 0;  // guarded by lineMutex

const char* levelName(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::kError:
      return "error";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kDebug:
      return "debug";
  }
  return "info";
}

bool writable() noexcept {
  pollfd waiter{STDERR_FILENO, POLLOUT, 0};
  return ::poll(&waiter, 1, 0) == 1 && (waiter.revents & POLLOUT) != 0;
}

// Control characters would let logged text forge lines or drive a terminal.
void appendClean(std::string& line, std::string_view text) {
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    line.push_back(control ? ' ' : c);
    if (line.size() >= kMaxLineBytes - 1) {
      break;
    }
  }
}

}  // namespace

void setLogLevel(LogLevel level) noexcept {
  threshold = level;
}

void logLine(LogLevel level, std::string_view text) noexcept {
  if (level > threshold.load(std::memory_order_relaxed)) {
    return;
  }
  try {
    const std::lock_guard lock(lineMutex);
    if (!writable()) {
      ++droppedLines;
      return;
    }
    std::string line = "stitchkit-sandbox: ";
    line += levelName(level);
    line += ": ";
    if (droppedLines != 0) {
      line += "(" + std::to_string(droppedLines) + " lines dropped) ";
    }
    appendClean(line, text);
    line.push_back('\n');
    ssize_t written = 0;
    do {
      written = ::write(STDERR_FILENO, line.data(), line.size());
    } while (written < 0 && errno == EINTR);
    droppedLines = written < 0 ? droppedLines + 1 : 0;
  } catch (...) {
    // Logging is best effort: without memory for a line there is none.
    return;
  }
}

}  // namespace stitchkit
