// The two framings of the wire, as a plain buffer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace conformance {

enum class Framing : std::uint8_t { kLines, kHeaders };

std::string encodeFrame(Framing framing, std::string_view message);

/// Bytes in, whole messages out.
class FrameReader {
 public:
  explicit FrameReader(Framing framing) : framing_(framing) {}

  void feed(std::string_view bytes) { buffer_.append(bytes); }
  /// The next whole message, or nullopt when more bytes are needed or the bytes are no frame (then `problem` is set).
  std::optional<std::string> next(std::string& problem);
  /// Bytes that are no whole message yet.
  [[nodiscard]] std::string_view rest() const { return std::string_view(buffer_).substr(begin_); }

 private:
  std::optional<std::string> nextLine(std::string& problem);
  std::optional<std::string> nextWithHeaders(std::string& problem);
  void consume(std::size_t count);

  Framing framing_;
  std::string buffer_;
  std::size_t begin_ = 0;    ///< what stands before was given out
  std::size_t scanned_ = 0;  ///< no line feed stands before
};

}  // namespace conformance
