#include "gateway/origin.h"

#include <arpa/inet.h>
#include <unicode/uidna.h>

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <stdexcept>

#include "gateway/header_fields.h"

namespace stitchkit {
namespace {

namespace urls = boost::urls;

constexpr std::string_view kAsOrigin = "Write scheme, host and port only, such as https://api.example.com:8443.";

std::uint16_t schemePort(bool secure) {
  return secure ? 443 : 80;
}

std::string_view schemeName(bool secure) {
  return secure ? "https" : "http";
}

bool isAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80U; });
}

bool isDigit(char c) {
  return c >= '0' && c <= '9';
}

std::string bracketed(const std::string& host) {
  return host.find(':') != std::string::npos ? "[" + host + "]" : host;
}

// The label that decides whether a resolver takes the whole for an IPv4 address in one of its old spellings.
bool isNumber(std::string_view label) {
  if (label.substr(0, 2) == "0x") {
    label.remove_prefix(2);
    return label.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  }
  return !label.empty() && std::all_of(label.begin(), label.end(), isDigit);
}

bool isIpv4(const std::string& host) {
  in_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1;
}

std::string ipv6Text(const in6_addr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET6, &address, text.data(), text.size());
}

bool isCanonicalIpv6(const std::string& host) {
  in6_addr address{};
  return inet_pton(AF_INET6, host.c_str(), &address) == 1 && IN6_IS_ADDR_V4MAPPED(&address) == 0 &&
         ipv6Text(address) == host;
}

// What is wrong with a lower-case name or IPv4 address; "" when nothing is.
std::string_view hostFault(const std::string& host) {
  if (host.empty()) {
    return "must name a host";
  }
  if (host.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_.") != std::string::npos) {
    return "must name a host of letters, digits, hyphens, underscores and dots";
  }
  if (host.back() == '.') {
    return "must not end its host with a dot";
  }
  if (host.front() == '.' || host.find("..") != std::string::npos) {
    return "must not have an empty label in its host";
  }
  if (isNumber(std::string_view(host).substr(host.rfind('.') + 1)) && !isIpv4(host)) {
    return "must write an IPv4 address as four decimal numbers";
  }
  return "";
}

// A port as digits without leading zeros; 0 when it is none.
std::uint16_t portOf(std::string_view text) {
  std::uint16_t port = 0;
  if (text.empty() || text.front() == '0' || !std::all_of(text.begin(), text.end(), isDigit)) {
    return 0;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && end == text.data() + text.size() ? port : 0;
}

// UTS 46 as browsers do it; "" when the host has no such form.
std::string punycode(std::string_view host) {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<UIDNA, void (*)(UIDNA*)> idna(uidna_openUTS46(UIDNA_NONTRANSITIONAL_TO_ASCII, &status),
                                                      uidna_close);
  UIDNAInfo info = UIDNA_INFO_INITIALIZER;
  std::array<char, 512> ascii{};
  if (U_FAILURE(status) != 0 || host.size() >= ascii.size()) {
    return "";
  }
  const int length = uidna_nameToASCII_UTF8(idna.get(), host.data(), static_cast<int>(host.size()), ascii.data(),
                                            static_cast<int>(ascii.size()), &info, &status);
  return U_SUCCESS(status) != 0 && info.errors == 0 ? std::string(ascii.data(), length) : "";
}

// The same origin with its host in ASCII, if that makes it one.
std::string asciiHint(std::string_view text) {
  const std::size_t start = text.find("://");
  if (start == std::string_view::npos) {
    return "";
  }
  const std::size_t host = start + 3;
  const std::size_t end = std::min(text.find_first_of("/?#:@[", host), text.size());
  const std::string ascii = punycode(text.substr(host, end - host));
  if (ascii.empty()) {
    return "";
  }
  const std::string whole = std::string(text.substr(0, host)) + ascii + std::string(text.substr(end));
  if (!isAscii(whole)) {
    return "";
  }
  const auto origin = parseOrigin(whole);
  return origin ? "Use " + origin->text() + " if that is the host that is meant." : "";
}

std::optional<OriginFault> textFault(std::string_view text) {
  if (std::any_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c <= ' ') || c == '\x7f'; })) {
    return OriginFault{"must not hold white space or control characters", ""};
  }
  if (!isAscii(text)) {
    return OriginFault{"must be written in ASCII", asciiHint(text)};
  }
  if (text.find('%') != std::string_view::npos) {
    return OriginFault{"must not hold percent-encoded characters", ""};
  }
  if (text.find('*') != std::string_view::npos) {
    return OriginFault{"must not hold a wildcard", "Give one rule for each host."};
  }
  return std::nullopt;
}

std::optional<OriginFault> partsFault(const urls::url_view& url) {
  if (url.scheme_id() != urls::scheme::http && url.scheme_id() != urls::scheme::https) {
    return OriginFault{"must have the scheme http or https", std::string(kAsOrigin)};
  }
  if (!url.has_authority()) {
    return OriginFault{"must have // after its scheme", std::string(kAsOrigin)};
  }
  if (url.has_userinfo()) {
    return OriginFault{"must not hold user information", "Put credentials into the rule's headers."};
  }
  if (!url.encoded_path().empty() && url.encoded_path() != "/") {
    return OriginFault{"must not hold a path", "Put paths into the rule's pathPrefixes."};
  }
  if (!url.encoded_query().empty()) {
    return OriginFault{"must not hold a query", std::string(kAsOrigin)};
  }
  if (!url.encoded_fragment().empty()) {
    return OriginFault{"must not hold a fragment", std::string(kAsOrigin)};
  }
  return std::nullopt;
}

std::optional<OriginFault> takeIpv6(const urls::url_view& url, Origin& out) {
  const urls::ipv6_address address = url.host_ipv6_address();
  if (address.is_v4_mapped()) {
    return OriginFault{"must not hold an IPv4 address in the form of IPv6", "Write the IPv4 address itself."};
  }
  in6_addr bytes{};
  const urls::ipv6_address::bytes_type parts = address.to_bytes();
  std::copy(parts.begin(), parts.end(), std::begin(bytes.s6_addr));
  out.host = ipv6Text(bytes);
  out.isAddress = true;
  return std::nullopt;
}

std::optional<OriginFault> takeHost(const urls::url_view& url, Origin& out) {
  if (url.host_type() == urls::host_type::ipv6) {
    return takeIpv6(url, out);
  }
  out.host = lowerCaseAscii({url.encoded_host().data(), url.encoded_host().size()});
  out.isAddress = isIpv4(out.host);
  const std::string_view fault = hostFault(out.host);
  return fault.empty() ? std::nullopt : std::optional(OriginFault{std::string(fault), ""});
}

}  // namespace

void throw_exception_from_error(const OriginFault& fault, const boost::source_location& /*where*/) {
  throw std::logic_error("an origin that was not checked: " + fault.message);
}

std::string Origin::authority() const {
  return port == schemePort(secure) ? bracketed(host) : bracketed(host) + ":" + std::to_string(port);
}

std::string Origin::text() const {
  return std::string(schemeName(secure)) + "://" + authority();
}

boost::system::result<Origin, OriginFault> parseOrigin(std::string_view text) {
  if (std::optional<OriginFault> fault = textFault(text)) {
    return std::move(*fault);
  }
  const auto url = urls::parse_uri({text.data(), text.size()});
  // Boost 1.81 takes what follows a number of IPv4 or a port for a path that need not begin with a slash.
  if (!url || (url->has_authority() && !url->encoded_path().empty() && url->encoded_path().front() != '/')) {
    return OriginFault{"must be the URL of an HTTP or HTTPS origin", std::string(kAsOrigin)};
  }
  if (std::optional<OriginFault> fault = partsFault(*url)) {
    return std::move(*fault);
  }
  Origin origin;
  origin.secure = url->scheme_id() == urls::scheme::https;
  if (std::optional<OriginFault> fault = takeHost(*url, origin)) {
    return std::move(*fault);
  }
  origin.port = url->has_port() ? portOf({url->port().data(), url->port().size()}) : schemePort(origin.secure);
  if (origin.port == 0) {
    return OriginFault{"must have a port from 1 to 65535, without leading zeros, or none", ""};
  }
  return origin;
}

std::string canonicalHostHeader(std::string_view value) {
  const std::string whole = lowerCaseAscii(value);
  std::string_view rest = whole;
  std::size_t end = std::min(rest.find(':'), rest.size());
  if (!rest.empty() && rest.front() == '[') {
    end = rest.find(']');
    if (end == std::string_view::npos || !isCanonicalIpv6(std::string(rest.substr(1, end - 1)))) {
      return "";
    }
    ++end;
  } else if (!hostFault(std::string(rest.substr(0, end))).empty()) {
    return "";
  }
  rest.remove_prefix(end);
  const bool fits = rest.empty() || (rest.front() == ':' && portOf(rest.substr(1)) != 0);
  return fits ? whole : "";
}

}  // namespace stitchkit
