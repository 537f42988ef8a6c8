#include "rpc/base/log_line.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <ctime>
#include <iterator>
#include <string>
#include <utility>

#include "rpc/base/utf8.h"

namespace stitchkit {
namespace {

// Of one text, in bytes as written: a message may say more than a name.
constexpr std::size_t kMessageBytes = 2048;
constexpr std::size_t kTextBytes = 512;
// `,"dropped":18446744073709551615,"truncated":true}` and the line's end.
constexpr std::size_t kTailBytes = 64;
// What stands around a field's value, and a number at its longest.
constexpr std::size_t kFrameBytes = 8;
constexpr std::size_t kNumberBytes = 32;
constexpr std::string_view kCut = "...";

std::string_view levelName(LogLevel level) noexcept {
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

bool isPlain(std::string_view text) {
  constexpr std::string_view kPlain = "-_./:@%+,*~";
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kPlain.find(c) != std::string_view::npos;
  });
}

unsigned codePoint(std::string_view character) {
  constexpr unsigned kLeadBits[] = {0x7f, 0x1f, 0x0f, 0x07};
  unsigned code = static_cast<unsigned char>(character.front()) & kLeadBits[character.size() - 1];
  for (const char next : character.substr(1)) {
    code = code << 6U | (static_cast<unsigned char>(next) & 0x3fU);
  }
  return code;
}

// Control characters (C1 too) and line separators would let logged text forge lines or drive a terminal; what turns the
// direction of text around lets it look like another (Unicode's Bidi_Control).
bool misleads(unsigned code) {
  constexpr std::pair<unsigned, unsigned> kRanges[] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
                                                       {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [&](const auto& range) { return code >= range.first && code <= range.second; });
}

// The first character of valid UTF-8, as it stands in JSON, for which `space` has room.
std::string_view escaped(std::string_view character, std::array<char, 6>& space) {
  const char lead = character.front();
  if (lead == '"' || lead == '\\') {
    space = {'\\', lead};
    return {space.data(), 2};
  }
  if (lead == '\n' || lead == '\r' || lead == '\t') {
    space = {'\\', lead == '\n' ? 'n' : lead == '\r' ? 'r' : 't'};
    return {space.data(), 2};
  }
  if (const unsigned code = codePoint(character); misleads(code)) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    space = {'\\',
             'u',
             kDigits[code >> 12U & 15U],
             kDigits[code >> 8U & 15U],
             kDigits[code >> 4U & 15U],
             kDigits[code & 15U]};
    return {space.data(), 6};
  }
  return character;
}

std::size_t sequenceLength(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

}  // namespace

LogLineText::LogLineText(LogFormat format, LogLevel level, std::string_view event, std::int64_t unixMilliseconds)
    : format_(format), limit_(kBytes - kTailBytes) {
  if (format_ == LogFormat::kText) {
    put("stitchkit-sandbox: ");
    put(levelName(level));
    put(": ");
    put(event);
    return;
  }
  put(R"({"time":")");
  putTime(unixMilliseconds);
  put(R"(","level":")");
  put(levelName(level));
  put(R"(","event":")");
  put(event);
  put('"');
}

void LogLineText::put(std::string_view text) {
  std::memcpy(bytes_.data() + size_, text.data(), text.size());
  size_ += text.size();
}

void LogLineText::putNumber(std::int64_t number) {
  size_ = static_cast<std::size_t>(std::to_chars(bytes_.data() + size_, bytes_.data() + kBytes, number).ptr -
                                   bytes_.data());
}

void LogLineText::putNumber(std::uint64_t number) {
  size_ = static_cast<std::size_t>(std::to_chars(bytes_.data() + size_, bytes_.data() + kBytes, number).ptr -
                                   bytes_.data());
}

// Nothing that is measured here comes near the bounds; outside of them there would be no number in JSON.
void LogLineText::putNumber(double number) {
  constexpr double kMost = 1e15;
  const double bounded = number > -kMost && number < kMost ? number : kMost;
  size_ = static_cast<std::size_t>(
      std::to_chars(bytes_.data() + size_, bytes_.data() + kBytes, bounded, std::chars_format::fixed, 1).ptr -
      bytes_.data());
}

// RFC 3339 in UTC.
void LogLineText::putTime(std::int64_t unixMilliseconds) {
  const std::time_t seconds = unixMilliseconds / 1000;
  const auto milliseconds = static_cast<unsigned>(unixMilliseconds % 1000);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  size_ += std::strftime(bytes_.data() + size_, room(), "%Y-%m-%dT%H:%M:%S", &utc);
  const char fraction[] = {'.', static_cast<char>('0' + milliseconds / 100),
                           static_cast<char>('0' + milliseconds / 10 % 10), static_cast<char>('0' + milliseconds % 10),
                           'Z'};
  put(std::string_view(fraction, sizeof fraction));
}

void LogLineText::putName(std::string_view name) {
  if (format_ == LogFormat::kText) {
    put(' ');
    put(name);
    put('=');
  } else {
    put(",\"");
    put(name);
    put("\":");
  }
}

// @param end where the text ends at the latest, with what says that it was cut.
bool LogLineText::putCharacter(std::string_view character, std::size_t end) {
  std::array<char, 6> space;
  const std::string_view written = escaped(character, space);
  if (size_ + written.size() + kCut.size() > end) {
    put(kCut);
    truncated_ = true;
    return false;
  }
  put(written);
  return true;
}

void LogLineText::putText(std::string_view text, std::size_t most) {
  const std::size_t end = std::min(size_ + most, limit_ - 1);
  // More than this is never written.
  text = text.substr(0, std::min(text.size(), kBytes));
  std::string repaired;
  if (!isUtf8(text)) {
    repaired = toUtf8(text);
    text = repaired;
  }
  const bool quoted = format_ == LogFormat::kJson || !isPlain(text);
  if (quoted) {
    put('"');
  }
  while (!text.empty()) {
    const std::size_t length = sequenceLength(text.front());
    if (!putCharacter(text.substr(0, length), end)) {
      break;
    }
    text.remove_prefix(length);
  }
  if (quoted) {
    put('"');
  }
}

void LogLineText::add(const LogField& field) {
  const auto* text = std::get_if<std::string_view>(&field.value);
  if (field.value.index() == 0 || (text != nullptr && text->empty())) {
    return;
  }
  if (room() < field.name.size() + kFrameBytes + kNumberBytes) {
    truncated_ = true;
    return;
  }
  putName(field.name);
  if (text != nullptr) {
    putText(*text, field.name == "message" ? kMessageBytes : kTextBytes);
  } else if (const auto* flag = std::get_if<bool>(&field.value)) {
    put(*flag ? "true" : "false");
  } else if (const auto* number = std::get_if<std::int64_t>(&field.value)) {
    putNumber(*number);
  } else if (const auto* count = std::get_if<std::uint64_t>(&field.value)) {
    putNumber(*count);
  } else {
    putNumber(std::get<double>(field.value));
  }
}

std::string_view LogLineText::finish(std::uint64_t dropped) {
  limit_ = kBytes;
  if (truncated_) {
    putName("truncated");
    put("true");
  }
  if (dropped != 0) {
    putName("dropped");
    putNumber(dropped);
  }
  put(format_ == LogFormat::kJson ? std::string_view("}\n") : std::string_view("\n"));
  return {bytes_.data(), size_};
}

}  // namespace stitchkit
