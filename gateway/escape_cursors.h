// A text read as what its escapes stand for. Cursors stack: JsonCursor<PercentCursor<PlainCursor>> undoes JSON's
// escapes in what percent-decoding gives. They are small values: a copy reads ahead.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stitchkit {

/// One byte of the meaning, and the bytes of the text that stand for it. A character that takes several bytes gives
/// several units with the same place.
struct EscapedUnit {
  unsigned char byte = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

inline int hexDigit(unsigned char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  const unsigned char lower = c | 0x20U;
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// The text as it is.
class PlainCursor {
 public:
  static constexpr bool kEscapes = false;

  explicit PlainCursor(std::string_view text) : text_(text) {}

  bool next(EscapedUnit& out) {
    if (at_ == text_.size()) {
      return false;
    }
    out = {static_cast<unsigned char>(text_[at_]), at_, at_ + 1};
    ++at_;
    return true;
  }

  /// Whether at() is where the next unit begins.
  [[nodiscard]] bool between() const { return true; }
  [[nodiscard]] std::size_t at() const { return at_; }
  void seek(std::size_t at) { at_ = at; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

/// `%41` is `A`; with kForm `+` is a space. A percent sign without two digits is itself.
template <class Inner, bool kForm>
class PercentCursor {
 public:
  static constexpr bool kEscapes = true;

  explicit PercentCursor(std::string_view text) : inner_(text) {}

  bool next(EscapedUnit& out) {
    if (!inner_.next(out)) {
      return false;
    }
    if (out.byte == '%') {
      decode(out);
    } else if (kForm && out.byte == '+') {
      out.byte = ' ';
    }
    return true;
  }

  [[nodiscard]] bool between() const { return inner_.between(); }
  [[nodiscard]] std::size_t at() const { return inner_.at(); }
  void seek(std::size_t at) { inner_.seek(at); }

 private:
  void decode(EscapedUnit& out) {
    Inner ahead = inner_;
    EscapedUnit high;
    EscapedUnit low;
    if (ahead.next(high) && hexDigit(high.byte) >= 0 && ahead.next(low) && hexDigit(low.byte) >= 0) {
      out = {static_cast<unsigned char>(hexDigit(high.byte) * 16 + hexDigit(low.byte)), out.begin, low.end};
      inner_ = ahead;
    }
  }

  Inner inner_;
};

/// Backslash escapes of JSON; characters beyond ASCII become UTF-8. A backslash that begins no escape is itself.
template <class Inner>
class JsonCursor {
 public:
  static constexpr bool kEscapes = true;

  explicit JsonCursor(std::string_view text) : inner_(text) {}

  bool next(EscapedUnit& out) {
    if (given_ < count_) {
      out = {bytes_[given_++], begin_, end_};
      return true;
    }
    if (!inner_.next(out)) {
      return false;
    }
    if (out.byte == '\\') {
      decode(out);
    }
    return true;
  }

  [[nodiscard]] bool between() const { return given_ == count_ && inner_.between(); }
  [[nodiscard]] std::size_t at() const { return inner_.at(); }
  void seek(std::size_t at) { inner_.seek(at); }

 private:
  void decode(EscapedUnit& out) {
    Inner ahead = inner_;
    EscapedUnit letter;
    if (!ahead.next(letter)) {
      return;
    }
    if (letter.byte == 'u') {
      decodeNumber(ahead, out);
      return;
    }
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const std::size_t known = kLetters.find(static_cast<char>(letter.byte));
    if (known != std::string_view::npos) {
      out = {static_cast<unsigned char>(kMeanings[known]), out.begin, letter.end};
      inner_ = ahead;
    }
  }

  // The four digits of \uXXXX; -1 when they are not there.
  static std::int32_t digits(Inner& ahead, std::size_t& end) {
    std::int32_t code = 0;
    for (int i = 0; i < 4; ++i) {
      EscapedUnit digit;
      if (!ahead.next(digit) || hexDigit(digit.byte) < 0) {
        return -1;
      }
      code = code * 16 + hexDigit(digit.byte);
      end = digit.end;
    }
    return code;
  }

  void decodeNumber(Inner& ahead, EscapedUnit& out) {
    std::size_t end = 0;
    std::int32_t code = digits(ahead, end);
    if (code < 0) {
      return;
    }
    inner_ = ahead;
    if (code >= 0xD800 && code <= 0xDBFF) {
      EscapedUnit backslash;
      EscapedUnit letter;
      std::size_t pairEnd = 0;
      if (ahead.next(backslash) && backslash.byte == '\\' && ahead.next(letter) && letter.byte == 'u') {
        const std::int32_t low = digits(ahead, pairEnd);
        if (low >= 0xDC00 && low <= 0xDFFF) {
          code = 0x10000 + (code - 0xD800) * 0x400 + (low - 0xDC00);
          end = pairEnd;
          inner_ = ahead;
        }
      }
    }
    begin_ = out.begin;
    end_ = end;
    encode(static_cast<std::uint32_t>(code));
    given_ = 1;
    out = {bytes_[0], begin_, end_};
  }

  void encode(std::uint32_t code) {
    const auto tail = [code](unsigned shift) { return static_cast<unsigned char>(0x80U | (code >> shift & 0x3FU)); };
    if (code < 0x80) {
      bytes_ = {static_cast<unsigned char>(code)};
      count_ = 1;
    } else if (code < 0x800) {
      bytes_ = {static_cast<unsigned char>(0xC0U | code >> 6U), tail(0)};
      count_ = 2;
    } else if (code < 0x10000) {
      bytes_ = {static_cast<unsigned char>(0xE0U | code >> 12U), tail(6), tail(0)};
      count_ = 3;
    } else {
      bytes_ = {static_cast<unsigned char>(0xF0U | code >> 18U), tail(12), tail(6), tail(0)};
      count_ = 4;
    }
  }

  Inner inner_;
  std::array<unsigned char, 4> bytes_{};
  int count_ = 0;
  int given_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace stitchkit
