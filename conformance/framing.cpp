#include "conformance/framing.h"

#include <charconv>

namespace conformance {

std::string encodeFrame(Framing framing, std::string_view message) {
  if (framing == Framing::kHeaders) {
    return "Content-Length: " + std::to_string(message.size()) + "\r\n\r\n" + std::string(message);
  }
  return std::string(message) + "\n";
}

std::optional<std::string> FrameReader::next(std::string& problem) {
  return framing_ == Framing::kLines ? nextLine(problem) : nextWithHeaders(problem);
}

void FrameReader::consume(std::size_t count) {
  begin_ += count;
  scanned_ = begin_;
  if (begin_ == buffer_.size() || begin_ > 1024U * 1024) {
    buffer_.erase(0, begin_);
    begin_ = scanned_ = 0;
  }
}

std::optional<std::string> FrameReader::nextLine(std::string& problem) {
  const std::size_t end = buffer_.find('\n', scanned_);
  if (end == std::string::npos) {
    scanned_ = buffer_.size();
    return std::nullopt;
  }
  std::string line = buffer_.substr(begin_, end - begin_);
  consume(end + 1 - begin_);
  if (line.empty()) {
    problem = "an empty line on stdout";
    return std::nullopt;
  }
  return line;
}

std::optional<std::string> FrameReader::nextWithHeaders(std::string& problem) {
  const std::size_t end = buffer_.find("\r\n\r\n", begin_);
  if (end == std::string::npos) {
    return std::nullopt;
  }
  const std::string_view header = std::string_view(buffer_).substr(begin_, end - begin_);
  constexpr std::string_view kName = "Content-Length: ";
  const std::size_t at = header.find(kName);
  std::size_t length = 0;
  const char* first = header.data() + at + kName.size();
  if (at == std::string_view::npos || std::from_chars(first, header.data() + header.size(), length).ec != std::errc()) {
    problem = "no Content-Length in the header: " + std::string(header);
    return std::nullopt;
  }
  if (buffer_.size() - (end + 4) < length) {
    return std::nullopt;
  }
  std::string message = buffer_.substr(end + 4, length);
  consume(end + 4 + length - begin_);
  return message;
}

}  // namespace conformance
