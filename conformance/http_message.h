// HTTP/1.1 as the runner reads it: what an upstream gets, and what a guest gets back. Strict on purpose, and no code of
// the product: what a lenient reader would take is a fault here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/json_text.h"

namespace conformance {

struct HttpMessage {
  std::string method;                                       ///< of a request
  std::string target;                                       ///< of a request, as it came
  int status = 0;                                           ///< of a reply
  std::vector<std::pair<std::string, std::string>> fields;  ///< names in lower case, in order; values as bytes
  std::string body;                                         ///< without its framing

  /// The first value of this name, or "".
  [[nodiscard]] std::string field(std::string_view name) const;
};

struct HttpParsed {
  enum class State : std::uint8_t { kMore, kWhole, kWrong };
  State state = State::kMore;
  std::string problem;       ///< for kWrong
  std::size_t consumed = 0;  ///< for kWhole: so many bytes are the message
  HttpMessage message;
};

/// Looks at the beginning of what has come. Wrong are line ends other than CRLF, spaces where none belong, both
/// framings or two lengths, chunk extensions and trailers, heads over 64 KiB, and bodies over 8 MiB.
HttpParsed parseRequest(std::string_view bytes);
/// @param ended   nothing will follow: a body without framing ends here
/// @param toHead  the request was HEAD: there is no body, whatever the header says
HttpParsed parseReply(std::string_view bytes, bool ended, bool toHead);

/// Bytes as Latin-1, in UTF-8.
std::string latin1(std::string_view bytes);
/// The text if it is UTF-8 and at most 64 KiB, else `{bytes, sha256}`.
Json describeBody(const std::string& body);
/// `[[name, value], ...]`, values as Latin-1.
Json describeFields(const HttpMessage& message);

}  // namespace conformance
