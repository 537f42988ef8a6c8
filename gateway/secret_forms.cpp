#include "gateway/secret_forms.h"

#include <algorithm>
#include <optional>

#include "gateway/escape_cursors.h"
#include "gateway/header_fields.h"
#include "rpc/base/base64.h"

namespace stitchkit {
namespace {

// `Bearer k` must not cost every text its k.
constexpr std::size_t kShortestToken = 8;
// People choose shorter ones, and a pair is seldom anything else.
constexpr std::size_t kShortestPassword = 4;

void addFrom(std::size_t shortest, std::string form, std::vector<std::string>& out) {
  if (form.size() >= shortest) {
    out.push_back(std::move(form));
  }
}

std::string percentDecoded(std::string_view text) {
  std::string decoded;
  PercentCursor<PlainCursor, false> cursor(text);
  for (EscapedUnit unit; cursor.next(unit);) {
    decoded += static_cast<char>(unit.byte);
  }
  return decoded;
}

void addBasic(std::string token, std::vector<std::string>& out) {
  while (token.size() % 4 != 0 && token.size() % 4 != 1) {
    token += '=';
  }
  const std::optional<std::string> pair = decodeBase64(token);
  const std::size_t colon = pair ? pair->find(':') : std::string::npos;
  if (colon == std::string::npos) {
    return;
  }
  const std::string password = pair->substr(colon + 1);
  if (password.empty()) {
    addFrom(kShortestToken, pair->substr(0, colon), out);
  }
  addFrom(kShortestPassword, password, out);
  addFrom(kShortestPassword, *pair, out);
}

void addAuthorization(std::string_view value, std::vector<std::string>& out) {
  const std::size_t schemeEnd = std::min(value.find_first_of(" \t"), value.size());
  const std::size_t tokenBegin = value.find_first_not_of(" \t", schemeEnd);
  if (tokenBegin == std::string_view::npos) {
    return;
  }
  const std::string token(value.substr(tokenBegin));
  addFrom(kShortestToken, token, out);
  if (lowerCaseAscii(value.substr(0, schemeEnd)) == "basic") {
    addBasic(token, out);
  }
}

bool isAsciiOnly(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80U; });
}

}  // namespace

std::vector<std::string> secretForms(const std::vector<HeaderField>& injected) {
  std::vector<std::string> forms;
  for (const HeaderField& field : injected) {
    addFrom(1, field.value, forms);
    if (field.name == "authorization") {
      addAuthorization(field.value, forms);
    }
  }
  for (std::size_t i = 0, count = forms.size(); i < count; ++i) {
    if (std::string decoded = percentDecoded(forms[i]); decoded != forms[i]) {
      addFrom(kShortestToken, std::move(decoded), forms);
    }
  }
  for (std::size_t i = 0, count = forms.size(); i < count; ++i) {
    if (!isAsciiOnly(forms[i])) {
      forms.push_back(utf8OfLatin1(forms[i]));
    }
  }
  std::sort(forms.begin(), forms.end());
  forms.erase(std::unique(forms.begin(), forms.end()), forms.end());
  return forms;
}

}  // namespace stitchkit
