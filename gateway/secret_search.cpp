#include "gateway/secret_search.h"

#include <algorithm>
#include <array>

#include "gateway/escape_cursors.h"

namespace stitchkit {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr int kPadding = 64;
constexpr int kLineEnd = -1;  // between the lines of a wrapped text
constexpr int kBlank = -2;    // indentation of such a line
constexpr int kForeign = -3;

constexpr std::array<short, 256> base64Values() {
  std::array<short, 256> values{};
  for (short& value : values) {
    value = kForeign;
  }
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<short>(i);
  }
  values['-'] = 62;
  values['_'] = 63;
  values['='] = kPadding;
  values['\r'] = values['\n'] = kLineEnd;
  values[' '] = values['\t'] = kBlank;
  return values;
}

constexpr std::array<short, 256> kBase64Values = base64Values();

// The characters of both alphabets that have the value.
std::string charactersOf(unsigned char value) {
  std::string characters;
  for (std::size_t byte = 0; byte < kBase64Values.size(); ++byte) {
    if (kBase64Values[byte] == value) {
      characters += static_cast<char>(byte);
    }
  }
  return characters;
}

std::string charactersOf(unsigned char mask, unsigned char bits) {
  std::string characters;
  for (unsigned char value = 0; value < 64; ++value) {
    if ((value & mask) == bits) {
      characters += charactersOf(value);
    }
  }
  return characters;
}

// Values of base64 characters; bits that are missing at the end are zero.
std::string base64Symbols(std::string_view bytes) {
  std::string symbols;
  for (std::size_t bit = 0; bit < bytes.size() * 8; bit += 6) {
    const std::size_t byte = bit / 8;
    const unsigned high = static_cast<unsigned char>(bytes[byte]);
    const unsigned low = byte + 1 < bytes.size() ? static_cast<unsigned char>(bytes[byte + 1]) : 0U;
    symbols += static_cast<char>((high << 8U | low) >> (10U - bit % 8) & 0x3FU);
  }
  return symbols;
}

// What was last read, as far back as a needle may reach.
template <class T>
class History {
 public:
  explicit History(std::size_t reach) {
    std::size_t size = 1;
    while (size < reach) {
      size *= 2;
    }
    items_.resize(size);
  }

  void push(T item) { items_[count_++ & (items_.size() - 1)] = item; }
  /// @param back 1 for the last one.
  [[nodiscard]] const T& at(std::size_t back) const { return items_[(count_ - back) & (items_.size() - 1)]; }
  [[nodiscard]] std::size_t count() const { return count_; }
  void clear() { count_ = 0; }

 private:
  std::vector<T> items_;
  std::size_t count_ = 0;
};

}  // namespace

void PairFilter::markAll(unsigned char first) {
  for (unsigned second = 0; second < 256; ++second) {
    mark(first, static_cast<unsigned char>(second));
  }
}

std::size_t PairFilter::next(std::string_view text, std::size_t at) const {
  while (at + 1 < text.size() &&
         !pairs_[std::size_t{static_cast<unsigned char>(text[at])} << 8U | static_cast<unsigned char>(text[at + 1])]) {
    ++at;
  }
  return at;
}

// Where occurrences are, put down as asterisks in a copy of the text, if one is wanted.
class SecretSearch::Marks {
 public:
  Marks(std::string_view text, std::string* copy) : text_(text), copy_(copy) {}

  void add(std::size_t begin, std::size_t end) {
    any_ = true;
    if (copy_ == nullptr) {
      return;
    }
    if (copy_->empty()) {
      copy_->assign(text_);
    }
    // Occurrences that overlap are not written over and over again.
    if (begin <= runEnd_ && end >= runBegin_) {
      fill(begin, runBegin_);
      fill(runEnd_, end);
      runBegin_ = std::min(begin, runBegin_);
      runEnd_ = std::max(end, runEnd_);
    } else {
      fill(begin, end);
      runBegin_ = begin;
      runEnd_ = end;
    }
  }

  [[nodiscard]] bool any() const { return any_; }
  /// Nothing more has to be found.
  [[nodiscard]] bool enough() const { return any_ && copy_ == nullptr; }

 private:
  void fill(std::size_t begin, std::size_t end) {
    if (begin < end) {
      std::fill(copy_->begin() + static_cast<std::ptrdiff_t>(begin), copy_->begin() + static_cast<std::ptrdiff_t>(end),
                '*');
    }
  }

  std::string_view text_;
  std::string* copy_;
  bool any_ = false;
  std::size_t runBegin_ = 0;
  std::size_t runEnd_ = 0;
};

// Looks for secrets in what it is given byte by byte.
class PlainSink {
 public:
  /// @param units at most so many will come.
  PlainSink(const SecretSearch& search, SecretSearch::Marks& marks, std::size_t units)
      : needles_(search.plain_), marks_(marks), begins_(std::min(needles_.longest(), units)) {}

  void take(const EscapedUnit& unit) {
    begins_.push(unit.begin);
    state_ = needles_.step(state_, unit.byte);
    if (const std::size_t length = needles_.longestMatch(state_); length != 0) {
      marks_.add(begins_.at(length), unit.end);
    }
  }

  [[nodiscard]] bool idle() const { return state_ == 0; }

 private:
  const NeedleSet& needles_;
  SecretSearch::Marks& marks_;
  History<std::size_t> begins_;
  NeedleSet::State state_ = 0;
};

// Looks for their base64 forms.
class Base64Sink {
 public:
  /// @param units at most so many will come.
  Base64Sink(const SecretSearch& search, SecretSearch::Marks& marks, std::size_t units)
      : needles_(search.base64_),
        edges_(search.edges_),
        marks_(marks),
        read_(std::min(needles_.longest() + 1, units)) {}

  void take(const EscapedUnit& unit) {
    const int value = kBase64Values[unit.byte];
    if (value >= 0) {
      takeSymbol(static_cast<unsigned char>(value), unit);
    } else if (value == kLineEnd && read_.count() != 0) {
      wrapped_ = true;
    } else if (value != kBlank || !wrapped_) {
      reset();
    }
  }

  [[nodiscard]] bool idle() const { return state_ == 0 && waiting_.empty() && !ended_ && !wrapped_; }

  void reset() {
    state_ = 0;
    read_.clear();
    waiting_.clear();
    ended_ = false;
    wrapped_ = false;
  }

 private:
  struct Symbol {
    unsigned char value = 0;
    std::size_t begin = 0;
  };
  /// Found but for the bits in the character that comes next.
  struct Waiting {
    std::size_t begin;
    Base64Edges edges;
  };

  void takeSymbol(unsigned char value, const EscapedUnit& unit) {
    wrapped_ = false;
    read_.push({value, unit.begin});
    if (value == kPadding && ended_) {
      found(end_, unit.end);
    } else {
      ended_ = false;
    }
    for (const Waiting& waiting : waiting_) {
      if (value != kPadding && (value & waiting.edges.trailMask) == waiting.edges.trailBits) {
        found(waiting.begin, unit.end);
      }
    }
    waiting_.clear();
    state_ = needles_.step(state_, value);
    needles_.forEachMatch(state_, [&](std::size_t length, std::uint32_t tag) { whole(length, edges_[tag], unit.end); });
  }

  // The whole characters of a form are there.
  void whole(std::size_t length, const Base64Edges& edges, std::size_t end) {
    if (edges.leadMask != 0) {
      ++length;
      if (read_.count() < length || read_.at(length).value == kPadding ||
          (read_.at(length).value & edges.leadMask) != edges.leadBits) {
        return;
      }
    }
    if (edges.trailMask != 0) {
      waiting_.push_back({read_.at(length).begin, edges});
    } else {
      found(read_.at(length).begin, end);
    }
  }

  // Padding that follows belongs to it.
  void found(std::size_t begin, std::size_t end) {
    marks_.add(begin, end);
    ended_ = true;
    end_ = end;
  }

  const NeedleSet& needles_;
  const std::vector<Base64Edges>& edges_;
  SecretSearch::Marks& marks_;
  History<Symbol> read_;
  NeedleSet::State state_ = 0;
  std::vector<Waiting> waiting_;
  bool ended_ = false;  // an occurrence, with the last symbol, at end_
  std::size_t end_ = 0;
  bool wrapped_ = false;  // the line has ended since the last symbol
};

SecretSearch::SecretSearch(const std::vector<std::string>& secrets) {
  for (const std::string& secret : secrets) {
    addPlain(secret);
    addBase64(secret);
  }
  plain_.seal();
  base64_.seal();
  escaped_.markAll('%');
  escaped_.markAll('\\');
  asItIs_.markAll('\r');
  asItIs_.markAll('\n');
  escaped_.markAll('\r');
  escaped_.markAll('\n');
}

void SecretSearch::addPlain(const std::string& secret) {
  plain_.add(secret, 0);
  holdsSpace_ = holdsSpace_ || secret.find(' ') != std::string::npos;
  const auto spellings = [](char c) { return c == ' ' ? std::string(" +") : std::string(1, c); };
  if (secret.size() > 1) {
    markStart(spellings(secret[0]), spellings(secret[1]));
    return;
  }
  for (const char first : spellings(secret[0])) {
    asItIs_.markAll(static_cast<unsigned char>(first));
    escaped_.markAll(static_cast<unsigned char>(first));
  }
}

// A secret of less than three bytes has too few whole characters where its alignment is not known.
void SecretSearch::addBase64(const std::string& secret) {
  if (secret.size() < 3) {
    std::string symbols = base64Symbols(secret);
    symbols.resize(4, static_cast<char>(kPadding));
    addBase64Form(symbols, {});
    return;
  }
  for (std::size_t before = 0; before < 3; ++before) {
    const std::string symbols = base64Symbols(std::string(before, '\0') + secret);
    const std::size_t first = (before * 8 + 5) / 6;
    const std::size_t last = (before + secret.size()) * 8 / 6;
    Base64Edges edges;
    if (before != 0) {
      edges.leadMask = before == 1 ? 0x0F : 0x03;
      edges.leadBits = static_cast<unsigned char>(symbols[first - 1]) & edges.leadMask;
    }
    if (last != symbols.size()) {
      edges.trailMask = (before + secret.size()) % 3 == 1 ? 0x30 : 0x3C;
      edges.trailBits = static_cast<unsigned char>(symbols[last]);
    }
    addBase64Form(std::string_view(symbols).substr(first, last - first), edges);
  }
}

void SecretSearch::addBase64Form(std::string_view symbols, Base64Edges edges) {
  base64_.add(symbols, static_cast<std::uint32_t>(edges_.size()));
  edges_.push_back(edges);
  const auto first = static_cast<unsigned char>(symbols[0]);
  if (edges.leadMask != 0) {
    markBase64Start(charactersOf(edges.leadMask, edges.leadBits), first);
  }
  markBase64Start(charactersOf(first), static_cast<unsigned char>(symbols[1]));
}

void SecretSearch::markStart(std::string_view firsts, std::string_view seconds) {
  for (const char c : firsts) {
    const auto first = static_cast<unsigned char>(c);
    for (const char second : seconds) {
      asItIs_.mark(first, static_cast<unsigned char>(second));
      escaped_.mark(first, static_cast<unsigned char>(second));
    }
    escaped_.mark(first, '%');
    escaped_.mark(first, '\\');
  }
}

void SecretSearch::markBase64Start(std::string_view firsts, unsigned char second) {
  markStart(firsts, charactersOf(second) + "\r\n");
}

template <class Cursor, bool kBase64>
void SecretSearch::scan(std::string_view text, Marks& marks) const {
  const PairFilter& filter = Cursor::kEscapes ? escaped_ : asItIs_;
  PlainSink plain(*this, marks, text.size());
  Base64Sink base64(*this, marks, text.size());
  Cursor cursor(text);
  EscapedUnit unit;
  do {
    if (plain.idle() && base64.idle() && cursor.between()) {
      if (const std::size_t at = filter.next(text, cursor.at()); at != cursor.at()) {
        base64.reset();
        cursor.seek(at);
      }
    }
    if (!cursor.next(unit)) {
      return;
    }
    plain.take(unit);
    if constexpr (kBase64) {
      base64.take(unit);
    }
  } while (!marks.enough());
}

void SecretSearch::scanAll(std::string_view text, Marks& marks) const {
  using Percent = PercentCursor<PlainCursor, false>;
  using Form = PercentCursor<PlainCursor, true>;
  using Json = JsonCursor<PlainCursor>;
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  const bool percent = has("%");
  const bool backslash = has("\\");
  const bool plus = holdsSpace_ && has("+");
  const auto pass = [&](bool reason, auto scanning) {
    if (reason && !marks.enough()) {
      (this->*scanning)(text, marks);
    }
  };
  // In a form the plus sign is no character of base64.
  pass(true, &SecretSearch::scan<PlainCursor>);
  pass(percent, &SecretSearch::scan<Percent>);
  pass(plus, &SecretSearch::scan<Form, false>);
  pass(backslash, &SecretSearch::scan<Json>);
  pass(percent && backslash, &SecretSearch::scan<PercentCursor<Json, false>>);
  pass(plus && backslash, &SecretSearch::scan<PercentCursor<Json, true>, false>);
  pass(percent && has("%5"), &SecretSearch::scan<JsonCursor<Percent>>);
  pass(plus && has("%5"), &SecretSearch::scan<JsonCursor<Form>, false>);
  pass(percent && has("%25"), &SecretSearch::scan<PercentCursor<Percent, false>>);
  pass(backslash && has("\\\\"), &SecretSearch::scan<JsonCursor<Json>>);
}

bool SecretSearch::overwrite(std::string& text) const {
  std::string copy;
  Marks marks(text, &copy);
  scanAll(text, marks);
  if (marks.any()) {
    text = std::move(copy);
  }
  return marks.any();
}

bool SecretSearch::finds(std::string_view text) const {
  Marks marks(text, nullptr);
  scanAll(text, marks);
  return marks.any();
}

}  // namespace stitchkit
