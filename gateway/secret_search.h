// The search for secrets in a text, through base64 and up to two layers of escapes.
#pragma once

#include <bitset>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/needle_set.h"

namespace stitchkit {

/// Where something may begin, by a byte and the one after it: what passes over most of a text at a byte a cycle or two.
class PairFilter {
 public:
  void mark(unsigned char first, unsigned char second) { pairs_.set(std::size_t{first} << 8U | second); }
  void markAll(unsigned char first);

  /// The first marked place from `at` on. The last byte of a text always is one.
  [[nodiscard]] std::size_t next(std::string_view text, std::size_t at) const;

 private:
  std::bitset<65536> pairs_;
};

/// The characters next to the whole ones of a base64 form hold some bits of the secret and some of its neighbours.
struct Base64Edges {
  unsigned char leadMask = 0;  ///< 0: the form begins with a whole character
  unsigned char leadBits = 0;
  unsigned char trailMask = 0;  ///< 0: it ends with one
  unsigned char trailBits = 0;
};

/// Immutable; thread-safe. Each way of reading the text that it gives a reason for (a percent sign, a backslash) is one
/// pass over it, whose time is in proportion to it.
class SecretSearch {
 public:
  /// @param secrets not empty each, none twice.
  explicit SecretSearch(const std::vector<std::string>& secrets);

  /// Puts an asterisk in the place of each byte of each occurrence.
  /// @return whether there was one.
  bool overwrite(std::string& text) const;
  [[nodiscard]] bool finds(std::string_view text) const;

 private:
  friend class PlainSink;
  friend class Base64Sink;
  class Marks;

  void addPlain(const std::string& secret);
  void addBase64(const std::string& secret);
  void addBase64Form(std::string_view symbols, Base64Edges edges);
  void markStart(std::string_view firsts, std::string_view seconds);
  void markBase64Start(std::string_view firsts, unsigned char second);

  void scanAll(std::string_view text, Marks& marks) const;
  template <class Cursor, bool kBase64 = true>
  void scan(std::string_view text, Marks& marks) const;

  NeedleSet plain_;
  NeedleSet base64_;  // of values of characters, 0 to 63, and 64 for padding
  std::vector<Base64Edges> edges_;
  PairFilter asItIs_;
  PairFilter escaped_;
  bool holdsSpace_ = false;
};

}  // namespace stitchkit
