#include "codingtools/script_expression.h"

#include "rpc/base/limits.h"
#include "rpc/base/utf8.h"

#include <cstdint>
#include <optional>

namespace stitchkit {

namespace {

constexpr const char* kSpace =
    "\\t-\\r \\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}\\x{FEFF}";
constexpr const char* kNotSpace =
    "\\x{0}-\\x{8}\\x{E}-\\x{1F}!-\\x{9F}\\x{A1}-\\x{167F}\\x{1681}-\\x{1FFF}\\x{200B}-\\x{2027}\\x{202A}-\\x{202E}"
    "\\x{2030}-\\x{205E}\\x{2060}-\\x{2FFF}\\x{3001}-\\x{FEFE}\\x{FF00}-\\x{10FFFF}";

std::optional<std::uint32_t> hexValue(std::string_view digits) {
  std::uint32_t value = 0;
  for (const char c : digits) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0 || value > 0x10FFFFU) {
      return std::nullopt;
    }
    value = value * 16 + static_cast<std::uint32_t>(digit);
  }
  return digits.empty() || value > 0x10FFFFU ? std::nullopt : std::optional(value);
}

class Rewriter {
 public:
  explicit Rewriter(std::string_view pattern) : pattern_(pattern), rest_(pattern) {}

  Result<std::string> run() {
    while (!rest_.empty() && refusal_ == nullptr) {
      step();
    }
    if (refusal_ != nullptr) {
      return Error(ErrorKind::kBadRequest, refusal_)
          .withDetail("pattern", excerpt(pattern_, limits::kErrorTextCharacters))
          .withHint(
              "Search for a simpler expression and judge its matches: back-references and look-around are not "
              "supported, since a search must end in linear time.");
    }
    return std::move(out_);
  }

 private:
  void step() {
    const char c = rest_.front();
    if (c == '\\') {
      escape();
    } else if (inClass_) {
      classMember(c);
    } else if (c == '[') {
      openClass();
    } else if (c == '(' && rest_.substr(0, 2) == "(?") {
      group();
    } else {
      take(1);
    }
  }

  void take(std::size_t count) {
    out_ += rest_.substr(0, count);
    rest_.remove_prefix(std::min(count, rest_.size()));
  }

  void put(std::string_view text, std::size_t used) {
    out_ += text;
    rest_.remove_prefix(used);
  }

  void openClass() {
    if (rest_.substr(0, 3) == "[^]") {
      put("[\\x{0}-\\x{10FFFF}]", 3);
    } else if (rest_.substr(0, 2) == "[]") {
      put("[^\\x{0}-\\x{10FFFF}]", 2);
    } else {
      inClass_ = true;
      take(rest_.substr(0, 2) == "[^" ? 2 : 1);
    }
  }

  void classMember(char c) {
    if (c == ']') {
      inClass_ = false;
    }
    put(c == '[' ? "\\[" : rest_.substr(0, 1), 1);
  }

  void group() {
    const std::string_view opening = rest_.substr(0, 4);
    if (opening.substr(0, 3) == "(?=" || opening.substr(0, 3) == "(?!" || opening == "(?<=" || opening == "(?<!") {
      refusal_ = "The expression has look-around";
    } else if (opening.substr(0, 3) == "(?<") {
      put("(?P<", 3);
    } else {
      take(2);
    }
  }

  void escape() {
    if (rest_.size() < 2) {
      take(1);
      return;
    }
    const char c = rest_[1];
    switch (c) {
      case 'u':
      case 'x':
        hexEscape(c);
        return;
      case 'c':
        controlEscape();
        return;
      case 's':
        put(inClass_ ? kSpace : std::string("[") + kSpace + "]", 2);
        return;
      case 'S':
        put(inClass_ ? kNotSpace : std::string("[") + kNotSpace + "]", 2);
        return;
      case 'b':
        put(inClass_ ? "\\x{8}" : "\\b", 2);
        return;
      case '0':
        put("\\x{0}", 2);
        return;
      case 'k':
        refusal_ = "The expression has a back-reference";
        return;
      default:
        plainEscape(c);
    }
  }

  void plainEscape(char c) {
    if (c >= '1' && c <= '9') {
      if (!inClass_) {
        refusal_ = "The expression has a back-reference";
        return;
      }
      putCharacter(static_cast<std::uint32_t>(c - '0'), 2);
    } else if (std::string_view("dDwWBfnrtvpP").find(c) != std::string_view::npos) {
      take(2);
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0) {
      put(rest_.substr(1, 1), 2);
    } else {
      putCharacter(static_cast<unsigned char>(c), 2);
    }
  }

  void putCharacter(std::uint32_t value, std::size_t used) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    std::string digits;
    do {
      digits.insert(digits.begin(), kDigits[value % 16]);
      value /= 16;
    } while (value != 0);
    put("\\x{" + digits + "}", used);
  }

  void hexEscape(char kind) {
    if (kind == 'u' && rest_.substr(2, 1) == "{") {
      const std::size_t end = rest_.find('}');
      if (const auto value = end == std::string_view::npos ? std::nullopt : hexValue(rest_.substr(3, end - 3))) {
        putCharacter(*value, end + 1);
        return;
      }
    }
    const std::size_t digits = kind == 'u' ? 4 : 2;
    const auto value = rest_.size() >= 2 + digits ? hexValue(rest_.substr(2, digits)) : std::nullopt;
    if (!value) {
      put(rest_.substr(1, 1), 2);  // for itself, as in JavaScript
      return;
    }
    if (*value >= 0xD800U && *value < 0xDC00U && rest_.substr(6, 2) == "\\u" && rest_.size() >= 12) {
      if (const auto low = hexValue(rest_.substr(8, 4)); low && *low >= 0xDC00U && *low < 0xE000U) {
        putCharacter(0x10000U + ((*value - 0xD800U) << 10U) + (*low - 0xDC00U), 12);
        return;
      }
    }
    putCharacter(*value, 2 + digits);
  }

  void controlEscape() {
    const char letter = rest_.size() > 2 ? rest_[2] : '\0';
    if ((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z')) {
      putCharacter(static_cast<unsigned char>(letter) & 31U, 3);
    } else {
      put("\\\\c", 2);  // the backslash for itself, as in JavaScript
    }
  }

  std::string_view pattern_;
  std::string_view rest_;
  std::string out_;
  bool inClass_ = false;
  const char* refusal_ = nullptr;
};

}  // namespace

Result<std::string> toRe2Syntax(std::string_view pattern) {
  return Rewriter(pattern).run();
}

}  // namespace stitchkit
