// Finds injected header values in what an upstream sends back (PROTOCOL.md, 6: reflection).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gateway/policy.h"

namespace stitchkit {

/// Made once from the headers that a rule injects. Immutable; thread-safe.
///
/// Found are each value; its percent-encoded forms, whichever characters are encoded, in either case, with `+` for a
/// space; its base64 forms (both alphabets, with and without padding, at each of the three alignments inside a longer
/// text, wrapped lines too); the value as UTF-8 when it is Latin-1; and for `authorization` what follows the scheme,
/// and the decoded pair of `Basic` and its password, in the same forms. Backslash escapes of JSON count as what they
/// stand for.
class Redactor {
 public:
  Redactor() = default;  ///< finds nothing
  explicit Redactor(const std::vector<HeaderField>& injected);

  /// Puts an asterisk in the place of each byte of each occurrence. Linear in the text for a given set of headers.
  /// @return whether there was one.
  bool redact(std::string& text) const;
  [[nodiscard]] bool finds(std::string_view text) const;

 private:
  std::vector<std::string> plain_;   // bytes to be found as they are or escaped
  std::vector<std::string> base64_;  // text in the standard alphabet
};

}  // namespace stitchkit
