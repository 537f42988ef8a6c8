// One line of the log as text: bounded, valid whatever it is made of, without memory from the heap.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rpc/base/log.h"

namespace stitchkit {

/// A line under construction. Nothing that it is given makes it longer than kBytes, tears its JSON, or writes a control
/// character.
class LogLineText {
 public:
  // POLLOUT on a pipe promises room for PIPE_BUF (4096) bytes: a line no longer than that does not block.
  static constexpr std::size_t kBytes = 4096;

  /// @param unixMilliseconds is written in JSON only.
  LogLineText(LogFormat format, LogLevel level, std::string_view event, std::int64_t unixMilliseconds);
  void add(const LogField& field);
  /// The whole line with its end. Once.
  std::string_view finish(std::uint64_t dropped);

 private:
  [[nodiscard]] std::size_t room() const { return limit_ - size_; }
  void put(char c) { bytes_[size_++] = c; }
  void put(std::string_view text);
  void putNumber(std::int64_t number);
  void putNumber(std::uint64_t number);
  void putNumber(double number);
  void putTime(std::int64_t unixMilliseconds);
  void putName(std::string_view name);
  void putText(std::string_view text, std::size_t most);
  bool putCharacter(std::string_view character, std::size_t end);

  LogFormat format_;
  std::array<char, kBytes> bytes_;
  std::size_t size_ = 0;
  std::size_t limit_;
  bool truncated_ = false;
};

}  // namespace stitchkit
