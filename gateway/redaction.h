// Finds injected header values in what an upstream sends back (PROTOCOL.md, 6: reflection).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/policy.h"

namespace stitchkit {

class SecretSearch;

/// Made once from the headers that a rule injects. Immutable, cheap to copy, thread-safe.
///
/// Found are each value; its percent-encoded forms, whichever characters are encoded, in either case, with `+` for a
/// space; its base64 forms (both alphabets, with and without padding, at each of the three alignments inside a longer
/// text, wrapped lines too); the value as UTF-8 when it is Latin-1; and for `authorization` what follows the scheme,
/// and the decoded pair of `Basic` and its password, in the same forms. Backslash escapes of JSON count as what they
/// stand for. Two layers of escapes may lie upon each other: a URL in JSON, JSON in JSON, base64 in a URL.
///
/// A value that is given is looked for however short it is. What only follows from one has to have a length at which it
/// is not everywhere (gateway/secret_forms.h); the base64 of one or two bytes counts only where it stands with its
/// padding, since any text holds its four bits or twelve somewhere.
class Redactor {
 public:
  Redactor() = default;  ///< finds nothing
  explicit Redactor(const std::vector<HeaderField>& injected);

  /// Puts an asterisk in the place of each byte of each occurrence. Takes time in proportion to the text for a given
  /// set of headers.
  /// @return whether there was one.
  bool redact(std::string& text) const;
  [[nodiscard]] bool finds(std::string_view text) const;

 private:
  std::shared_ptr<const SecretSearch> search_;  // null: nothing to find
};

}  // namespace stitchkit
