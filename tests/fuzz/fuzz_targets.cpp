// The names that a guest's request and a policy's rule hold: a request target, an origin, a Host header. What is taken
// has one spelling, and that spelling is taken for the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/origin.h"
#include "gateway/request_target.h"
#include "tests/fuzz/fields.h"
#include "tests/fuzz/require.h"

namespace stitchkit {
namespace {

int hexDigit(char digit) {
  return digit >= '0' && digit <= '9'   ? digit - '0'
         : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
         : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                        : -1;
}

/// With each percent-encoding decoded once; requires that there is no broken one.
std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    FUZZ_REQUIRE(i + 2 < text.size() && hexDigit(text[i + 1]) >= 0 && hexDigit(text[i + 2]) >= 0);
    out += static_cast<char>(hexDigit(text[i + 1]) * 16 + hexDigit(text[i + 2]));
    i += 2;
  }
  return out;
}

void checkTarget(std::string_view text) {
  const auto target = parseRequestTarget(text);
  if (!target) {
    return;
  }
  FUZZ_REQUIRE(target->path.starts_with('/') && !target->path.starts_with("//"));
  FUZZ_REQUIRE(target->query.empty() || target->query.front() == '?');
  for (const char c : target->text()) {
    FUZZ_REQUIRE(c > ' ' && c < '\x7f' && c != '#' && c != '"' && c != '<' && c != '>');
  }
  FUZZ_REQUIRE(target->path.find('\\') == std::string::npos);
  // No segment means another place, in whatever spelling of its dots.
  for (std::string_view rest = target->path; !rest.empty();) {
    rest.remove_prefix(1);
    const std::string segment = decoded(rest.substr(0, rest.find('/')));
    FUZZ_REQUIRE(segment != "." && segment != "..");
    rest.remove_prefix(std::min(rest.find('/'), rest.size()));
  }
  const auto again = parseRequestTarget(target->text());
  FUZZ_REQUIRE(again && again->path == target->path && again->query == target->query);
  const std::string plain = decoded(target->path);
  const bool hides =
      plain.find('\0') != std::string::npos || plain.find('\\') != std::string::npos ||
      std::count(plain.begin(), plain.end(), '/') != std::count(target->path.begin(), target->path.end(), '/');
  FUZZ_REQUIRE(!hides || pathIsAmbiguous(target->path));
}

void checkOrigin(std::string_view text) {
  const auto origin = parseOrigin(text);
  if (!origin) {
    FUZZ_REQUIRE(!origin.error().message.empty());
    return;
  }
  FUZZ_REQUIRE(origin->port != 0 && !origin->host.empty());
  const auto again = parseOrigin(origin->text());
  FUZZ_REQUIRE(again && *again == *origin);
  FUZZ_REQUIRE(canonicalHostHeader(origin->authority()) == origin->authority());
}

void checkHost(std::string_view text) {
  const std::string host = canonicalHostHeader(text);
  FUZZ_REQUIRE(host.empty() || (host.size() == text.size() && canonicalHostHeader(host) == host));
  for (const char c : host) {
    FUZZ_REQUIRE(c > ' ' && c < '\x7f' && (c < 'A' || c > 'Z') && c != '/' && c != '@' && c != '%');
  }
}

}  // namespace
}  // namespace stitchkit

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stitchkit;
  const auto [target, origin, host] = fuzz::fields<3>({reinterpret_cast<const char*>(data), size});
  checkTarget(target);
  checkOrigin(origin);
  checkHost(host);
  return 0;
}
