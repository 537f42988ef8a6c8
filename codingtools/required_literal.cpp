#include "codingtools/required_literal.h"

#include "codingtools/literal_finder.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

namespace stitchkit {

namespace {

/// Deeper groups are not looked into.
constexpr int kMaxDepth = 100;

unsigned rarityOf(std::string_view literal) {
  unsigned sum = 0;
  for (const char byte : literal.substr(0, 8)) {
    sum += 1 + byteRarity(byte);
  }
  return sum;
}

void appendUtf8(std::string& text, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0U | code >> 6U);
    put(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    put(0xE0U | code >> 12U);
    put(0x80U | (code >> 6U & 0x3FU));
    put(0x80U | (code & 0x3FU));
  } else {
    put(0xF0U | code >> 18U);
    put(0x80U | (code >> 12U & 0x3FU));
    put(0x80U | (code >> 6U & 0x3FU));
    put(0x80U | (code & 0x3FU));
  }
}

/// Reads concatenations; whatever it does not understand gives up the whole, which is always right.
class Reader {
 public:
  explicit Reader(std::string_view expression) : rest_(expression) {}

  std::string run() {
    std::string literal = sequence(0);
    return gaveUp_ ? std::string() : literal;
  }

 private:
  /// One part of a concatenation: a character that stands for itself, or something that contains a literal or nothing.
  struct Part {
    std::string character;
    std::string inside;
  };

  /// Up to the end or the closing parenthesis.
  std::string sequence(int depth) {
    std::string best;
    std::string run;
    bool alternatives = false;
    const auto keep = [&](std::string& literal) {
      if (rarityOf(literal) > rarityOf(best)) {
        best = literal;
      }
      literal.clear();
    };
    while (!gaveUp_ && !rest_.empty() && rest_.front() != ')') {
      if (rest_.front() == '|') {
        alternatives = true;
        rest_.remove_prefix(1);
        continue;
      }
      Part next = part(depth);
      const Repeat repeat = quantifier();
      if (next.character.empty() || repeat != Repeat::kOnce) {
        if (repeat == Repeat::kAtLeastOnce) {
          run += next.character;
        }
        keep(run);
        if (repeat != Repeat::kMaybeNever) {
          keep(next.inside);
        }
      } else {
        run += next.character;
      }
    }
    keep(run);
    return alternatives ? std::string() : best;
  }

  Part part(int depth) {
    switch (rest_.front()) {
      case '(':
        return {{}, group(depth)};
      case '[':
        skipClass();
        return {};
      case '\\':
        return {escape(), {}};
      case '.':
      case '^':
      case '$':
        rest_.remove_prefix(1);
        return {};
      default:
        return {character(), {}};
    }
  }

  std::string character() {
    std::size_t length = 1;
    while (length < rest_.size() && (static_cast<unsigned char>(rest_[length]) & 0xC0U) == 0x80U) {
      ++length;
    }
    return take(length);
  }

  std::string take(std::size_t length) {
    std::string taken(rest_.substr(0, length));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::string group(int depth) {
    if (depth == kMaxDepth) {
      gaveUp_ = true;
      return {};
    }
    rest_.remove_prefix(1);
    if (rest_.substr(0, 2) == "?:") {
      rest_.remove_prefix(2);
    } else if (rest_.substr(0, 3) == "?P<") {
      rest_.remove_prefix(std::min(rest_.size(), rest_.find('>') + 1));
    } else if (rest_.substr(0, 1) == "?") {
      gaveUp_ = true;  // flags, which may make letters match others
      return {};
    }
    std::string inside = sequence(depth + 1);
    gaveUp_ = gaveUp_ || rest_.empty();
    rest_.remove_prefix(rest_.empty() ? 0 : 1);
    return inside;
  }

  void skipClass() {
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != ']') {
      end += rest_[end] == '\\' ? 2 : 1;
    }
    gaveUp_ = gaveUp_ || end >= rest_.size();
    rest_.remove_prefix(std::min(rest_.size(), end + 1));
  }

  /// The character that an escape stands for; "" for a class or an assertion.
  std::string escape() {
    const char kind = rest_.size() > 1 ? rest_[1] : '\0';
    const std::size_t brace = rest_.substr(2, 1) == "{" ? rest_.find('}') : std::string_view::npos;
    if (kind == 'x' && brace != std::string_view::npos) {
      std::uint32_t code = 0;
      std::from_chars(rest_.data() + 3, rest_.data() + brace, code, 16);
      rest_.remove_prefix(brace + 1);
      std::string text;
      appendUtf8(text, code);
      return text;
    }
    if (kind == 'p' || kind == 'P') {
      rest_.remove_prefix(brace != std::string_view::npos ? brace + 1 : std::min<std::size_t>(3, rest_.size()));
    } else if (std::string_view("dDwWbBnrtvf").find(kind) != std::string_view::npos) {
      rest_.remove_prefix(2);
    } else {
      gaveUp_ = true;
    }
    return {};
  }

  enum class Repeat : std::uint8_t { kOnce, kAtLeastOnce, kMaybeNever };

  Repeat quantifier() {
    Repeat repeat = Repeat::kOnce;
    for (;;) {
      const char sign = rest_.empty() ? '\0' : rest_.front();
      std::size_t length = sign == '*' || sign == '+' || sign == '?' ? 1 : 0;
      bool never = sign == '*' || sign == '?';
      if (sign == '{') {
        length = countedLength();
        never = rest_.substr(1, rest_.find_first_of(",}") - 1).find_first_not_of('0') == std::string_view::npos;
      }
      if (length == 0) {
        return repeat;
      }
      rest_.remove_prefix(length);
      if (rest_.substr(0, 1) == "?") {
        rest_.remove_prefix(1);
      }
      repeat = never ? Repeat::kMaybeNever : repeat == Repeat::kMaybeNever ? repeat : Repeat::kAtLeastOnce;
    }
  }

  /// Of `{n}`, `{n,}` or `{n,m}`; 0 when the brace stands for itself.
  [[nodiscard]] std::size_t countedLength() const {
    const std::size_t comma = rest_.find_first_not_of("0123456789", 1);
    if (comma == 1 || comma == std::string_view::npos) {
      return 0;
    }
    const std::size_t end = rest_[comma] == ',' ? rest_.find_first_not_of("0123456789", comma + 1) : comma;
    return end != std::string_view::npos && rest_[end] == '}' ? end + 1 : 0;
  }

  std::string_view rest_;
  bool gaveUp_ = false;
};

}  // namespace

std::string requiredLiteral(std::string_view expression) {
  return Reader(expression).run();
}

}  // namespace stitchkit
