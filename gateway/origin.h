// An exact HTTP origin, and the names by which a guest may ask for it.
//
// One spelling is checked, dialled and sent: whatever could be read in two ways is refused when the policy is given
// (PROTOCOL.md, 6).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rpc/base/error.h"

namespace stitchkit {

/// Normalised: equal values mean the same origin.
struct Origin {
  bool secure = false;      ///< https
  std::string host;         ///< lower-case name, dotted IPv4, or IPv6 as inet_ntop writes it, without brackets
  bool isAddress = false;   ///< `host` is a literal IP address: no name is looked up
  std::uint16_t port = 80;  ///< never 0

  /// `Host` of a request to it: the port is left out when it is the scheme's own; IPv6 in brackets.
  [[nodiscard]] std::string authority() const;
  /// `http://a.example:8080`; the port is left out when it is the scheme's own.
  [[nodiscard]] std::string text() const;

  friend bool operator==(const Origin&, const Origin&) = default;
};

/// What is wrong with an origin: a sentence's end ("must not hold user information") and what to write instead.
struct OriginFault {
  std::string message;
  std::string hint;  ///< "" for none; for a name that is not ASCII its punycode
};

/// Parses with Boost.URL. Refused: a scheme other than http and https, user information, a path other than `/`, a
/// query, a fragment, wildcards, hosts that are not ASCII, percent-encoding or white space anywhere, addresses in any
/// spelling but dotted IPv4 of four decimal parts and IPv6 without a zone (IPv4-mapped ones too), an empty or zero
/// port, a trailing dot. Accepted are an empty `?` and `#` (golden).
boost::system::result<Origin, OriginFault> parseOrigin(std::string_view text);
[[noreturn]] void throw_exception_from_error(const OriginFault& fault, const boost::source_location& where);

/// What a guest's `Host` header asks for, lower-case, if it is spelled in the one way that is looked at: a name or an
/// address of the characters that an Origin's host has, and after `:` a port from 1 to 65535 without leading zeros.
/// "" otherwise. Never resolves, decodes or trims.
std::string canonicalHostHeader(std::string_view value);

}  // namespace stitchkit
