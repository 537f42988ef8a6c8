#include "rpc/frame_decoder.h"

#include <algorithm>
#include <charconv>

#include "rpc/base/limits.h"

namespace stitchkit {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kLengthHeader = "content-length";

bool isBlank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool allBlank(std::string_view text) {
  return std::all_of(text.begin(), text.end(), isBlank);
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool equalsIgnoringCase(std::string_view text, std::string_view lowered) {
  return text.size() == lowered.size() &&
         std::equal(text.begin(), text.end(), lowered.begin(), [](char a, char b) { return lower(a) == b; });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && isBlank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && isBlank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

bool isFieldName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

}  // namespace

void FrameDecoder::feed(std::string_view bytes, std::vector<FrameEvent>& events) {
  while (!bytes.empty()) {
    std::size_t taken = 0;
    switch (state_) {
      case State::kStart:
        taken = takeStart(bytes);
        break;
      case State::kLine:
      case State::kSkipLine:
        taken = takeLine(bytes, events);
        break;
      case State::kHeader:
      case State::kResync:
        taken = takeHeaderLine(bytes, events);
        break;
      case State::kBody:
      case State::kSkipBody:
        taken = takeBody(bytes, events);
        break;
    }
    bytes.remove_prefix(taken);
  }
}

void FrameDecoder::end(std::vector<FrameEvent>& events) {
  if (state_ == State::kLine && !allBlank(buffer_)) {
    events.push_back({FrameEvent::Kind::kMessage, std::move(buffer_)});
  } else if (state_ == State::kBody || (state_ == State::kHeader && (headerBytes_ != 0 || !buffer_.empty()))) {
    events.push_back({FrameEvent::Kind::kBadHeader, {}});
  }
  buffer_.clear();
}

// Blank bytes and a byte-order mark at the very start are skipped; the first other byte decides the framing.
std::size_t FrameDecoder::takeStart(std::string_view bytes) {
  const char c = bytes.front();
  if (c == kByteOrderMark[std::min<std::size_t>(buffer_.size(), 2)] && buffer_.size() < kByteOrderMark.size()) {
    buffer_.push_back(c);
    return 1;
  }
  if (buffer_ == kByteOrderMark) {
    buffer_.clear();
  }
  if (buffer_.empty() && isBlank(c)) {
    return 1;
  }
  if (framing_ == Framing::kAuto) {
    const bool letter = lower(c) >= 'a' && lower(c) <= 'z';
    framing_ = letter && buffer_.empty() ? Framing::kHeaders : Framing::kLines;
    detected_ = true;
  }
  state_ = framing_ == Framing::kHeaders ? State::kHeader : State::kLine;
  return 0;
}

std::size_t FrameDecoder::takeLine(std::string_view bytes, std::vector<FrameEvent>& events) {
  const std::size_t newline = bytes.find('\n');
  const std::string_view part = bytes.substr(0, newline);
  const std::size_t taken = newline == std::string_view::npos ? bytes.size() : newline + 1;
  if (state_ == State::kLine && overLimit(part.size())) {
    events.push_back({FrameEvent::Kind::kTooLarge, {}});
    std::string().swap(buffer_);
    state_ = State::kSkipLine;
  }
  if (state_ == State::kLine) {
    buffer_.append(part);
  }
  if (newline != std::string_view::npos) {
    if (state_ == State::kLine && !allBlank(buffer_)) {
      events.push_back({FrameEvent::Kind::kMessage, std::move(buffer_)});
    }
    buffer_.clear();
    state_ = State::kLine;
  }
  return taken;
}

std::size_t FrameDecoder::takeHeaderLine(std::string_view bytes, std::vector<FrameEvent>& events) {
  const std::size_t newline = bytes.find('\n');
  const std::string_view part = bytes.substr(0, newline);
  const std::size_t taken = newline == std::string_view::npos ? bytes.size() : newline + 1;
  // While waiting for the next header block only the start of a line matters.
  const std::size_t room = limits::kFrameHeaderBytes - std::min(limits::kFrameHeaderBytes, buffer_.size());
  buffer_.append(part.substr(0, room));
  headerBytes_ += taken;
  if (state_ == State::kHeader && headerBytes_ > limits::kFrameHeaderBytes) {
    badHeader(events);
  }
  if (newline != std::string_view::npos) {
    const std::string line = std::move(buffer_);
    buffer_.clear();
    onHeaderLine(trimmed(line), events);
  }
  return taken;
}

void FrameDecoder::onHeaderLine(std::string_view line, std::vector<FrameEvent>& events) {
  const std::size_t colon = line.find(':');
  const std::string_view name = colon == std::string_view::npos ? std::string_view{} : line.substr(0, colon);
  const bool isLength = equalsIgnoringCase(name, kLengthHeader);
  if (state_ == State::kResync) {
    if (!isLength) {
      return;
    }
    state_ = State::kHeader;
    headerBytes_ = line.size();
  }
  if (line.empty()) {
    onHeadersDone(events);
    return;
  }
  if (!isFieldName(name)) {
    badHeader(events);
    return;
  }
  if (!isLength) {
    return;  // Content-Type and what else a peer may send
  }
  const std::string_view digits = trimmed(line.substr(colon + 1));
  std::size_t length = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  const bool number = code == std::errc{} && end == digits.data() + digits.size();
  const bool huge = code == std::errc::result_out_of_range && end == digits.data() + digits.size();
  if ((!number && !huge) || contentLengthSeen_) {
    badHeader(events);
    return;
  }
  contentLength_ = huge ? SIZE_MAX : length;
  contentLengthSeen_ = true;
}

void FrameDecoder::onHeadersDone(std::vector<FrameEvent>& events) {
  if (!contentLengthSeen_) {
    if (headerBytes_ > 2) {
      badHeader(events);  // a block without a length; bare blank lines between frames are ignored
    }
    headerBytes_ = 0;
    return;
  }
  detected_ = false;
  bodyLeft_ = contentLength_;
  contentLengthSeen_ = false;
  headerBytes_ = 0;
  state_ = State::kBody;
  if (bodyLeft_ > maxBytes_) {
    events.push_back({FrameEvent::Kind::kTooLarge, {}});
    state_ = State::kSkipBody;
  } else if (bodyLeft_ == 0) {
    events.push_back({FrameEvent::Kind::kMessage, {}});
    state_ = State::kHeader;
  }
}

void FrameDecoder::badHeader(std::vector<FrameEvent>& events) {
  events.push_back({FrameEvent::Kind::kBadHeader, {}});
  contentLengthSeen_ = false;
  headerBytes_ = 0;
  // A stray word before the first JSON line must not turn the whole conversation into headers.
  state_ = detected_ ? State::kStart : State::kResync;
  framing_ = detected_ ? Framing::kAuto : framing_;
}

std::size_t FrameDecoder::takeBody(std::string_view bytes, std::vector<FrameEvent>& events) {
  const std::size_t taken = std::min(bodyLeft_, bytes.size());
  bodyLeft_ -= taken;
  if (state_ == State::kBody) {
    buffer_.append(bytes.substr(0, taken));
  }
  if (bodyLeft_ == 0) {
    if (state_ == State::kBody) {
      events.push_back({FrameEvent::Kind::kMessage, std::move(buffer_)});
    }
    buffer_.clear();
    state_ = State::kHeader;
  }
  return taken;
}

}  // namespace stitchkit
