#include "rpc/frame_decoder.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "rpc/base/limits.h"

namespace stitchkit {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kLengthHeader = "content-length";
// What is kept of a line while the next header block is looked for: room for the header and blanks around it.
constexpr std::size_t kResyncBytes = 64;

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

// The value of a Content-Length header: SIZE_MAX when it is beyond 64 bits, nothing when it is no number.
std::optional<std::size_t> lengthOf(std::string_view value) {
  const std::string_view digits = trimmed(value);
  std::size_t length = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (code == std::errc::invalid_argument || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return code == std::errc::result_out_of_range ? SIZE_MAX : length;
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
        taken = takeHeaderLine(bytes, events);
        break;
      case State::kResync:
        taken = takeResync(bytes);
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
  if ((state_ == State::kLine || state_ == State::kStart) && !allBlank(buffer_)) {
    events.push_back({FrameEvent::Kind::kMessage, std::move(buffer_)});
  } else if (state_ == State::kBody || (state_ == State::kHeader && (headerBytes_ != 0 || !buffer_.empty()))) {
    events.push_back({FrameEvent::Kind::kBadHeader, {}});
  }
  buffer_.clear();
}

// A byte-order mark is skipped where the stream begins, blank bytes until a message does; the next byte decides the
// framing.
std::size_t FrameDecoder::takeStart(std::string_view bytes) {
  const char c = bytes.front();
  if (atStreamStart_ && c == kByteOrderMark[buffer_.size()]) {
    buffer_.push_back(c);
    if (buffer_ == kByteOrderMark) {
      buffer_.clear();
      atStreamStart_ = false;
    }
    return 1;
  }
  atStreamStart_ = false;
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

// The CR of a line's end is kept with the line (JSON takes it as white space) but does not count towards its size.
bool FrameDecoder::overLimit(std::string_view more) const {
  const std::string_view last = more.empty() ? std::string_view(buffer_) : more;
  const std::size_t lineEnd = !last.empty() && last.back() == '\r' ? 1 : 0;
  return buffer_.size() + more.size() - lineEnd > maxBytes_;
}

std::size_t FrameDecoder::takeLine(std::string_view bytes, std::vector<FrameEvent>& events) {
  const std::size_t newline = bytes.find('\n');
  const std::string_view part = bytes.substr(0, newline);
  const std::size_t taken = newline == std::string_view::npos ? bytes.size() : newline + 1;
  if (state_ == State::kLine && overLimit(part)) {
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
    state_ = framing_ == Framing::kAuto ? State::kStart : State::kLine;
  }
  return taken;
}

std::size_t FrameDecoder::takeHeaderLine(std::string_view bytes, std::vector<FrameEvent>& events) {
  if (detected_ && buffer_.empty() && (bytes.front() == '{' || bytes.front() == '[')) {
    badHeader(events);  // the line before was a stray word, and here the conversation begins
    return 0;
  }
  const std::size_t newline = bytes.find('\n');
  const std::size_t taken = newline == std::string_view::npos ? bytes.size() : newline + 1;
  const std::size_t room = limits::kFrameHeaderBytes - headerBytes_;
  if (taken > room) {
    buffer_.append(bytes.substr(0, room));
    badHeader(events);
    if (state_ == State::kStart) {
      buffer_.clear();
      state_ = State::kSkipLine;
    }
    return room;
  }
  buffer_.append(bytes.substr(0, newline));
  headerBytes_ += taken;
  if (newline != std::string_view::npos) {
    const std::string line = std::move(buffer_);
    buffer_.clear();
    onHeaderLine(trimmed(line), events);
  }
  return taken;
}

void FrameDecoder::onHeaderLine(std::string_view line, std::vector<FrameEvent>& events) {
  if (line.empty()) {
    onHeadersDone(events);
    return;
  }
  const std::size_t colon = line.find(':');
  const std::string_view name = colon == std::string_view::npos ? std::string_view{} : line.substr(0, colon);
  if (!isFieldName(name)) {
    badHeader(events);
    if (state_ == State::kResync) {
      resyncAt(line);  // the rest of a body whose length was too small may stand before a good header
    }
    return;
  }
  if (!equalsIgnoringCase(name, kLengthHeader)) {
    return;  // Content-Type and what else a peer may send
  }
  const std::optional<std::size_t> length = lengthOf(line.substr(colon + 1));
  if (!length || contentLengthSeen_) {
    badHeader(events);
    return;
  }
  contentLength_ = *length;
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

std::size_t FrameDecoder::takeResync(std::string_view bytes) {
  const std::size_t newline = bytes.find('\n');
  const std::string_view part = bytes.substr(0, newline);
  buffer_.append(part.substr(part.size() - std::min(part.size(), kResyncBytes)));
  buffer_.erase(0, buffer_.size() - std::min(buffer_.size(), kResyncBytes));
  if (newline == std::string_view::npos) {
    return bytes.size();
  }
  const std::string line = std::move(buffer_);
  buffer_.clear();
  resyncAt(trimmed(line));
  return newline + 1;
}

// A body ends without a newline, so that behind one that was not understood the next header ends a line rather than
// being one.
void FrameDecoder::resyncAt(std::string_view line) {
  const std::size_t colon = line.rfind(':');
  if (colon == std::string_view::npos || colon < kLengthHeader.size() ||
      !equalsIgnoringCase(line.substr(colon - kLengthHeader.size(), kLengthHeader.size()), kLengthHeader)) {
    return;
  }
  if (const std::optional<std::size_t> length = lengthOf(line.substr(colon + 1))) {
    state_ = State::kHeader;
    contentLength_ = *length;
    contentLengthSeen_ = true;
    headerBytes_ = kLengthHeader.size();
  }
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
