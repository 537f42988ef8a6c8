#include "codingtools/required_literal.h"

#include "codingtools/literal_finder.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

namespace stitchkit {

namespace {

/// Deeper groups are not looked into.
constexpr int kMaxDepth = 100;

using Literals = std::vector<std::string>;

/// How often one of them stands in a text, as a number to compare.
double frequencyOf(const Literals& literals) {
  double frequency = literals.empty() ? std::numeric_limits<double>::infinity() : 0;
  for (const std::string& literal : literals) {
    unsigned rarity = 0;
    for (const char byte : std::string_view(literal).substr(0, 8)) {
      rarity += 1 + byteRarity(byte);
    }
    frequency += 1.0 / rarity;
  }
  return frequency;
}

/// The best of what parts of a concatenation require, each of them enough.
class Best {
 public:
  void offer(Literals literals) {
    if (frequencyOf(literals) < frequencyOf(best_)) {
      best_ = std::move(literals);
    }
  }
  /// Of characters that follow one another; empties it.
  void offer(std::string& run) {
    if (!run.empty()) {
      offer(Literals{std::exchange(run, {})});
    }
  }
  Literals take() { return std::exchange(best_, {}); }

 private:
  Literals best_;
};

/// What a choice between alternatives requires: something of each.
class Choice {
 public:
  void add(Literals branch) {
    impossible_ = impossible_ || branch.empty() || literals_.size() + branch.size() > kMostRequiredLiterals;
    std::move(branch.begin(), branch.end(), std::back_inserter(literals_));
  }
  Literals take() { return impossible_ ? Literals() : std::move(literals_); }

 private:
  Literals literals_;
  bool impossible_ = false;
};

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

  Literals run() {
    Literals literals = choice(0);
    return gaveUp_ ? Literals() : literals;
  }

 private:
  /// One part of a concatenation: a character that stands for itself, or something that contains a literal or nothing.
  struct Part {
    std::string character;
    Literals inside;
  };

  /// Up to the end or the closing parenthesis.
  Literals choice(int depth) {
    Choice literals;
    literals.add(sequence(depth));
    while (!gaveUp_ && !rest_.empty() && rest_.front() == '|') {
      rest_.remove_prefix(1);
      literals.add(sequence(depth));
    }
    return literals.take();
  }

  Literals sequence(int depth) {
    Best best;
    std::string run;
    while (!gaveUp_ && !rest_.empty() && rest_.front() != ')' && rest_.front() != '|') {
      Part next = part(depth);
      const Repeat repeat = quantifier();
      if (repeat != Repeat::kMaybeNever) {
        run += next.character;
        best.offer(std::move(next.inside));
      }
      if (next.character.empty() || repeat != Repeat::kOnce) {
        best.offer(run);
      }
    }
    best.offer(run);
    return best.take();
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

  Literals group(int depth) {
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
    Literals inside = choice(depth + 1);
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

std::vector<std::string> requiredLiterals(std::string_view expression) {
  return Reader(expression).run();
}

}  // namespace stitchkit
