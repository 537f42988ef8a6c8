// Rules as lines: `o` begins a rule with its origin, `h` is a header `name:value`, `m` a method, `p` a path prefix, `q`
// and `s` name headers of requests and responses. Each origin is tried as a Host header, too.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/header_fields.h"
#include "gateway/policy.h"
#include "rpc/base/utf8.h"
#include "tests/fuzz/require.h"

namespace stitchkit {
namespace {

constexpr std::size_t kMaxIssues = 32;

void checkOrigin(std::string_view text) {
  const std::string host = canonicalHostHeader(text);
  FUZZ_REQUIRE(host.empty() || (host == lowerCaseAscii(text) && canonicalHostHeader(host) == host));
  const auto origin = parseOrigin(text);
  if (!origin) {
    FUZZ_REQUIRE(!origin.error().message.empty());
    return;
  }
  FUZZ_REQUIRE(origin->port != 0);
  FUZZ_REQUIRE(canonicalHostHeader(origin->authority()) == origin->authority());
  const auto again = parseOrigin(origin->text());
  FUZZ_REQUIRE(again && *again == *origin);
}

void addLine(char kind, std::string text, std::vector<RuleInput>& rules) {
  if (kind == 'o' || rules.empty()) {
    checkOrigin(text);
    rules.emplace_back().origin = text;
    return;
  }
  RuleInput& rule = rules.back();
  const std::size_t colon = std::min(text.find(':'), text.size());
  switch (kind) {
    case 'h':
      rule.headers.emplace_back(text.substr(0, colon), text.substr(std::min(colon + 1, text.size())));
      break;
    case 'm':
      rule.methods.emplace(rule.methods.value_or(std::vector<std::string>{})).push_back(text);
      break;
    case 'p':
      rule.pathPrefixes.emplace(rule.pathPrefixes.value_or(std::vector<std::string>{})).push_back(text);
      break;
    case 'q':
      rule.requestHeaders.push_back(text);
      break;
    default:
      rule.responseHeaders.push_back(text);
  }
}

std::vector<RuleInput> rulesOf(std::string_view text) {
  std::vector<RuleInput> rules;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (!line.empty()) {
      addLine(line.front(), toUtf8(line.substr(1)), rules);
    }
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return rules;
}

RuleInput asInput(const Rule& rule) {
  RuleInput input;
  input.origin = rule.origin.text();
  for (const HeaderField& field : rule.headers) {
    input.headers.emplace_back(field.name, utf8OfLatin1(field.value));
  }
  input.methods = rule.methods;
  input.pathPrefixes = rule.pathPrefixes;
  input.requestHeaders = rule.requestHeaders;
  input.responseHeaders = rule.responseHeaders;
  return input;
}

void checkRule(const Rule& rule) {
  std::set<std::string> names;
  for (const HeaderField& field : rule.headers) {
    FUZZ_REQUIRE(isHttpToken(field.name) && !isReservedField(foldedFieldName(field.name)));
    FUZZ_REQUIRE(names.insert(foldedFieldName(field.name)).second);
    for (const char c : field.value) {
      FUZZ_REQUIRE(static_cast<unsigned char>(c) >= ' ' || c == '\t');
      FUZZ_REQUIRE(c != '\x7f');
    }
  }
  for (const std::string& prefix : rule.pathPrefixes.value_or(std::vector<std::string>{})) {
    FUZZ_REQUIRE(rule.allowsPath(prefix) && prefix.front() == '/');
  }
}

void checkPolicy(const std::vector<RuleInput>& rules) {
  const Result<NetworkPolicy> policy = NetworkPolicy::allowList(rules, "network");
  if (!policy) {
    const Error error = policy.error();
    const auto& issues = std::get<std::vector<ValidationIssue>>(error.details.at(0).second);
    FUZZ_REQUIRE(error.kind == ErrorKind::kValidation && !issues.empty() && issues.size() <= kMaxIssues);
    return;
  }
  // What a policy has become is a policy, and the same.
  std::vector<RuleInput> normalised;
  for (const RuleInput& input : rules) {
    const Rule* rule = policy->ruleFor(parseOrigin(input.origin)->authority());
    FUZZ_REQUIRE(rule != nullptr);
    checkRule(*rule);
    normalised.push_back(asInput(*rule));
  }
  std::reverse(normalised.begin(), normalised.end());
  const Result<NetworkPolicy> again = NetworkPolicy::allowList(normalised, "network");
  FUZZ_REQUIRE(again.has_value());
  FUZZ_REQUIRE(*again == *policy);
}

}  // namespace
}  // namespace stitchkit

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stitchkit;
  checkPolicy(rulesOf({reinterpret_cast<const char*>(data), size}));
  return 0;
}
