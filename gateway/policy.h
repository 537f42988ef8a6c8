// What guests may reach (PROTOCOL.md, 6). Checked and normalised once, when it is given; frozen then.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/origin.h"
#include "rpc/base/error.h"

namespace stitchkit {

/// What becomes of an injected value that the upstream sends back.
enum class Reflection : std::uint8_t { kRedact, kRefuse, kAllow };

/// The name in lower case; the value as its bytes go out (Latin-1), without CR, LF, NUL or white space at its ends.
struct HeaderField {
  std::string name;
  std::string value;

  friend bool operator==(const HeaderField&, const HeaderField&) = default;
};

/// A rule as the host wrote it; all text is UTF-8.
struct RuleInput {
  std::string origin;
  std::vector<std::pair<std::string, std::string>> headers;
  std::optional<std::vector<std::string>> methods;
  std::optional<std::vector<std::string>> pathPrefixes;
  std::vector<std::string> requestHeaders;
  std::vector<std::string> responseHeaders;
  std::uint64_t maxRequestBytes = 0;   ///< the schema's default and maximum hold
  std::uint64_t maxResponseBytes = 0;  ///< likewise
  Reflection reflection = Reflection::kRedact;
};

/// A rule made ready. Lists are sorted and hold nothing twice.
struct Rule {
  Origin origin;
  std::vector<HeaderField> headers;                      ///< injected; each name once
  std::optional<std::vector<std::string>> methods;       ///< absent: all but those that are always refused
  std::optional<std::vector<std::string>> pathPrefixes;  ///< absent: all
  std::vector<std::string> requestHeaders;               ///< lower-case names beyond content-type and accept
  std::vector<std::string> responseHeaders;              ///< lower-case names beyond content-type
  std::uint64_t maxRequestBytes = 0;
  std::uint64_t maxResponseBytes = 0;
  Reflection reflection = Reflection::kRedact;

  [[nodiscard]] bool allowsMethod(std::string_view method) const;
  /// @param path normalised (gateway/request_target.h), without the query. A prefix ends where a segment ends: `/v1`
  /// lets `/v1` and `/v1/x` through, not `/v10`.
  [[nodiscard]] bool allowsPath(std::string_view path) const;

  friend bool operator==(const Rule&, const Rule&) = default;
};

/// Immutable and cheap to copy; thread-safe. Equal when they mean the same.
class NetworkPolicy {
 public:
  enum class Kind : std::uint8_t { kDenyAll, kAllowAll, kAllowList };

  NetworkPolicy() = default;  ///< deny-all
  static NetworkPolicy denyAll() { return {}; }
  static NetworkPolicy allowAll();
  /// VALIDATION_ERROR with one issue a fault, at most 32, `path` naming the member: `network.allow.0.headers.x-key`.
  /// Messages and hints never hold a header's value.
  /// @param path names the policy: `network`.
  static Result<NetworkPolicy> allowList(const std::vector<RuleInput>& rules, std::string_view path);

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  /// Sorted by origin; none under the other kinds of policy. Live as long as the policy or a copy of it.
  [[nodiscard]] std::span<const Rule> rules() const;
  /// The rule for a guest's `Host` header as canonicalHostHeader() gives it; null when there is none, and under the
  /// other kinds of policy. Lives as long as the policy or a copy of it.
  [[nodiscard]] const Rule* ruleFor(const std::string& canonicalHost) const;

  friend bool operator==(const NetworkPolicy& a, const NetworkPolicy& b);

 private:
  struct AllowList {
    std::vector<Rule> rules;  // sorted by origin
    std::map<std::string, std::size_t, std::less<>> byHost;
  };

  Kind kind_ = Kind::kDenyAll;
  std::shared_ptr<const AllowList> list_;
};

/// `deny-all`, `allow-all`, or `allow-list`.
std::string_view nameOf(NetworkPolicy::Kind kind);

}  // namespace stitchkit
