// The first line is an injected value, the rest a text that comes back. The value is also put into it, encoded.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/redaction.h"
#include "rpc/base/base64.h"
#include "tests/fuzz/require.h"

namespace stitchkit {
namespace {

std::string percent(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', "0123456789abcdef"[byte >> 4U], "0123456789ABCDEF"[byte & 15U]};
  }
  return out;
}

/// Only asterisks come in, and the value is not there any more.
bool redacted(const Redactor& redactor, std::string_view secret, std::string& text) {
  const std::string before = text;
  const bool finds = redactor.finds(text);
  FUZZ_REQUIRE(redactor.redact(text) == finds);
  FUZZ_REQUIRE(text.size() == before.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    FUZZ_REQUIRE(text[i] == before[i] || text[i] == '*');
  }
  FUZZ_REQUIRE(finds || text == before);
  // Asterisks of a value could come about by redaction.
  FUZZ_REQUIRE(secret.find('*') != std::string_view::npos || text.find(secret) == std::string::npos);
  return finds;
}

}  // namespace
}  // namespace stitchkit

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stitchkit;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::string_view secret = all.substr(0, all.find('\n'));
  if (secret.empty()) {
    return 0;
  }
  const std::string text(all.substr(std::min(secret.size() + 1, all.size())));
  const Redactor redactor({{"authorization", std::string(secret)}});
  std::string copy = text;
  redacted(redactor, secret, copy);
  for (const std::string& form : {std::string(secret), percent(secret), encodeBase64(secret)}) {
    copy = text + " " + form + " " + text;
    FUZZ_REQUIRE(redacted(redactor, secret, copy));
    FUZZ_REQUIRE(copy.substr(text.size() + 1, form.size()) == std::string(form.size(), '*'));
  }
  return 0;
}
