// What this process writes to stderr, for tests of the log.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "rpc/base/log.h"
#include "rpc/base/unique_fd.h"

namespace stitchkit::testing {

/// A pipe in the place of stderr while it lives; and level and format as they were afterwards.
class CaughtStderr {
 public:
  explicit CaughtStderr(LogFormat format = LogFormat::kText) : former_(::dup(STDERR_FILENO)) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0 || ::dup2(ends[1], STDERR_FILENO) < 0) {
      throw std::runtime_error("no pipe");
    }
    reading_.reset(ends[0]);
    ::close(ends[1]);
    setLogFormat(format);
  }
  ~CaughtStderr() {
    ::dup2(former_.get(), STDERR_FILENO);
    setLogFormat(LogFormat::kText);
    setLogLevel(LogLevel::kInfo);
  }
  CaughtStderr(const CaughtStderr&) = delete;
  CaughtStderr& operator=(const CaughtStderr&) = delete;

  /// What is there now.
  std::string text() {
    std::string all;
    std::array<char, 65536> buffer;
    for (ssize_t got = 0; (got = ::read(reading_.get(), buffer.data(), buffer.size())) > 0;) {
      all.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return all;
  }
  std::vector<std::string> lines() {
    std::vector<std::string> found;
    const std::string all = text();
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t end = all.find('\n', at);
      if (end == std::string::npos) {
        throw std::runtime_error("a line without an end: " + all.substr(at));
      }
      found.push_back(all.substr(at, end - at));
      at = end + 1;
    }
    return found;
  }
  /// Takes the pipe's room, and gives it back.
  void fill() {
    const std::string block(4096, '#');
    while (::write(STDERR_FILENO, block.data(), block.size()) > 0) {
    }
  }

 private:
  UniqueFd former_;
  UniqueFd reading_;
};

}  // namespace stitchkit::testing
