#include "rpc/frame_decoder.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

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

bool namesLength(std::string_view line) {
  return equalsIgnoringCase(trimmed(line.substr(0, line.find(':'))), kLengthHeader);
}

bool isFieldName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

bool isField(std::string_view line) {
  const std::size_t colon = line.find(':');
  return colon != std::string_view::npos && isFieldName(line.substr(0, colon));
}

// Whether a line that begins with a letter was meant as a header, good or bad, rather than as a word for people.
bool isHeaderLike(std::string_view line) {
  return isField(trimmed(line)) || line.ends_with('\r') ||
         equalsIgnoringCase(line.substr(0, kLengthHeader.size()), kLengthHeader);
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
      case State::kSkipBlock:
      case State::kResync:
        taken = takeSkippedLine(bytes, events);
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
  } else if (state_ == State::kBody) {
    events.push_back({FrameEvent::Kind::kCutOff, {}});
  } else if (state_ == State::kHeader) {
    endHeaders(events);
  }
  decideHeaders(events);
  buffer_.clear();
}

void FrameDecoder::endHeaders(std::vector<FrameEvent>& events) {
  if (undecided_ && !blockBegun_ && !isHeaderLike(buffer_)) {
    strayWord(events);
  } else if (blockBegun_ || !allBlank(buffer_)) {
    events.push_back({FrameEvent::Kind::kCutOff, {}});
  }
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
    undecided_ = framing_ == Framing::kHeaders;
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

bool FrameDecoder::beginsJson(std::string_view bytes) const {
  return undecided_ && buffer_.empty() && (bytes.front() == '{' || bytes.front() == '[');
}

std::size_t FrameDecoder::takeHeaderLine(std::string_view bytes, std::vector<FrameEvent>& events) {
  if (beginsJson(bytes)) {
    strayWord(events);
    return 0;
  }
  const std::size_t newline = bytes.find('\n');
  const std::size_t taken = newline == std::string_view::npos ? bytes.size() : newline + 1;
  const std::size_t room = limits::kFrameHeaderBytes - headerBytes_;
  if (taken > room) {
    buffer_.append(bytes.substr(0, room));
    badBlock(events);
    return room;
  }
  buffer_.append(bytes.substr(0, newline));
  headerBytes_ += taken;
  if (newline != std::string_view::npos) {
    const std::string line = std::move(buffer_);
    buffer_.clear();
    onHeaderLine(line, events);
  }
  return taken;
}

void FrameDecoder::onHeaderLine(std::string_view whole, std::vector<FrameEvent>& events) {
  const std::string_view line = trimmed(whole);
  if (line.empty()) {
    onHeadersDone(events);
    return;
  }
  blockBegun_ = true;
  if (undecided_ && !isHeaderLike(whole)) {
    strayWord(events);
    return;
  }
  const bool second = lengthNamed_;
  lengthNamed_ = lengthNamed_ || namesLength(line);
  if (!isField(line)) {
    badBlock(events);
    resyncAt(line, events);  // the rest of a body whose length was too small may stand before a good header
    return;
  }
  if (!namesLength(line)) {
    return;  // Content-Type and what else a peer may send
  }
  const std::optional<std::size_t> length = lengthOf(line.substr(line.find(':') + 1));
  if (!length || second) {
    badBlock(events);
    return;
  }
  contentLength_ = *length;
  contentLengthSeen_ = true;
}

void FrameDecoder::onHeadersDone(std::vector<FrameEvent>& events) {
  if (!contentLengthSeen_) {
    if (blockBegun_) {  // bare blank lines between frames are ignored
      badBlock(events);
      decideHeaders(events);
    }
    blockEnds();
    return;
  }
  blockEnds();
  undecided_ = false;
  bodyLeft_ = contentLength_;
  state_ = State::kBody;
  if (bodyLeft_ > maxBytes_) {
    events.push_back({FrameEvent::Kind::kTooLarge, {}});
    state_ = State::kSkipBody;
  } else if (bodyLeft_ == 0) {
    events.push_back({FrameEvent::Kind::kMessage, {}});
    state_ = State::kHeader;
  }
}

// One report a block, whatever its lines are. Where a length was named the rest of the block is not looked at: which
// of two lengths counts is not ours to guess.
void FrameDecoder::badBlock(std::vector<FrameEvent>& events) {
  if (undecided_) {
    reportOwed_ = true;
  } else {
    events.push_back({FrameEvent::Kind::kBadHeader, {}});
  }
  contentLengthSeen_ = false;
  state_ = lengthNamed_ ? State::kSkipBlock : State::kResync;
}

void FrameDecoder::blockEnds() {
  contentLengthSeen_ = false;
  lengthNamed_ = false;
  blockBegun_ = false;
  headerBytes_ = 0;
}

void FrameDecoder::decideHeaders(std::vector<FrameEvent>& events) {
  if (std::exchange(reportOwed_, false)) {
    events.push_back({FrameEvent::Kind::kBadHeader, {}});
    undecided_ = false;
  }
}

void FrameDecoder::strayWord(std::vector<FrameEvent>& events) {
  events.push_back({FrameEvent::Kind::kBadHeader, {}});
  blockEnds();
  reportOwed_ = false;
  undecided_ = false;
  framing_ = Framing::kAuto;
  state_ = State::kStart;
  buffer_.clear();
}

// Of a line that may have any length the end is kept, where a `Content-Length` would stand.
std::size_t FrameDecoder::takeSkippedLine(std::string_view bytes, std::vector<FrameEvent>& events) {
  if (beginsJson(bytes)) {
    strayWord(events);
    return 0;
  }
  const std::size_t newline = bytes.find('\n');
  const std::string_view part = bytes.substr(0, newline);
  skippedBlank_ = skippedBlank_ && allBlank(buffer_) && allBlank(part);
  buffer_.append(part.substr(part.size() - std::min(part.size(), kResyncBytes)));
  buffer_.erase(0, buffer_.size() - std::min(buffer_.size(), kResyncBytes));
  if (newline == std::string_view::npos) {
    return bytes.size();
  }
  const std::string line = std::move(buffer_);
  buffer_.clear();
  if (std::exchange(skippedBlank_, true)) {
    decideHeaders(events);
    blockEnds();
    state_ = State::kResync;
  } else {
    resyncAt(trimmed(line), events);
  }
  return newline + 1;
}

// A body ends without a newline, so that behind one that was not understood the next header ends a line rather than
// being one.
void FrameDecoder::resyncAt(std::string_view line, std::vector<FrameEvent>& events) {
  const std::size_t colon = line.rfind(':');
  if (state_ != State::kResync || colon == std::string_view::npos || colon < kLengthHeader.size() ||
      !equalsIgnoringCase(line.substr(colon - kLengthHeader.size(), kLengthHeader.size()), kLengthHeader)) {
    return;
  }
  if (const std::optional<std::size_t> length = lengthOf(line.substr(colon + 1))) {
    decideHeaders(events);
    blockEnds();
    state_ = State::kHeader;
    contentLength_ = *length;
    contentLengthSeen_ = true;
    lengthNamed_ = true;
    blockBegun_ = true;
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
