#include "gateway/policy.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "gateway/header_fields.h"
#include "rpc/base/limits.h"
#include "rpc/base/utf8.h"

namespace stitchkit {
namespace {

constexpr std::size_t kMaxPolicyIssues = 32;

// A tunnel, an echo of what was injected, and the word that opens HTTP/2.
constexpr std::array<std::string_view, 3> kRefusedMethods = {"CONNECT", "PRI", "TRACE"};
// What travels from the guest, and what comes back, under any rule (PROTOCOL.md, 6).
constexpr std::array<std::string_view, 2> kAlwaysSent = {"accept", "content-type"};
constexpr std::array<std::string_view, 1> kAlwaysReturned = {"content-type"};

template <class Names>
bool holds(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void sortUnique(std::vector<std::string>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

std::string_view methodFault(std::string_view method) {
  const bool spelled =
      !method.empty() && method.front() != '-' &&
      std::all_of(method.begin(), method.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '-'; });
  if (!spelled) {
    return "must be a method in upper-case letters";
  }
  return holds(kRefusedMethods, method) ? "is never let through: CONNECT, PRI and TRACE are not" : "";
}

// Some servers take `..;x` for `..`.
bool isDotSegment(std::string_view segment) {
  segment = segment.substr(0, segment.find(';'));
  return segment == "." || segment == "..";
}

std::string_view pathFault(std::string_view path) {
  if (path.empty() || path.front() != '/') {
    return "must begin with /";
  }
  const auto foreign = [](char c) {  // beyond ASCII is below zero
    return c <= ' ' || c == '\x7f' || std::string_view("?#%\\\"<>`{}").find(c) != std::string_view::npos;
  };
  if (std::any_of(path.begin(), path.end(), foreign)) {
    return "must be made of characters that a URL's path holds unencoded, without %";
  }
  for (std::size_t start = 1; start < path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    const std::string_view segment = path.substr(start, end - start);
    if (segment.empty() || isDotSegment(segment)) {
      return "must not hold empty segments or the segments . and ..";
    }
    start = end + 1;
  }
  return "";
}

// The names under which a guest's Host may mean the origin.
std::vector<std::string> hostNames(const Origin& origin) {
  std::vector<std::string> names{origin.authority()};
  if (origin.port == (origin.secure ? 443 : 80)) {
    names.push_back(names.front() + ":" + std::to_string(origin.port));
  }
  return names;
}

// Checks the rules of one policy and makes them ready, collecting what is wrong.
class RuleReader {
 public:
  explicit RuleReader(std::string_view path) : path_(std::string(path) + ".allow") {}

  Rule read(const RuleInput& input, std::size_t index) {
    rulePath_ = path_ + "." + std::to_string(index);
    Rule rule;
    readOrigin(input.origin, index, rule);
    readHeaders(input.headers, rule);
    readMethods(input.methods, rule);
    readPaths(input.pathPrefixes, rule);
    readNames("requestHeaders", input.requestHeaders, kAlwaysSent, rule.requestHeaders);
    readNames("responseHeaders", input.responseHeaders, kAlwaysReturned, rule.responseHeaders);
    separateNames(rule, input.requestHeaders);
    rule.maxRequestBytes = input.maxRequestBytes;
    rule.maxResponseBytes = input.maxResponseBytes;
    rule.reflection = input.reflection;
    return rule;
  }

  [[nodiscard]] bool full() const { return issues_.size() >= kMaxPolicyIssues; }
  [[nodiscard]] bool failed() const { return !issues_.empty(); }

  Error error() && {
    const std::string first = issues_.front().path + " " + issues_.front().message;
    return Error(ErrorKind::kValidation, "The network policy cannot be used: " + first)
        .withDetail("issues", std::move(issues_))
        .withHint(std::move(hint_));
  }

 private:
  void issue(const std::string& member, std::string_view message, std::string hint = "") {
    if (full()) {
      return;
    }
    if (issues_.empty()) {
      hint_ = std::move(hint);
    }
    issues_.push_back({rulePath_ + "." + member, std::string(message)});
  }

  void listIssue(const char* list, std::size_t index, std::string_view message) {
    issue(std::string(list) + "." + std::to_string(index), message);
  }

  // A long text that is no name may be a credential in the wrong place.
  static bool mayBeRepeated(const std::string& name) {
    constexpr std::size_t kShort = 16;
    return isHttpToken(name) || name.size() <= kShort;
  }

  static std::string headerMember(const std::string& name) {
    return "headers." + excerpt(name, limits::kEchoedCharacters);
  }

  void readOrigin(const std::string& text, std::size_t index, Rule& rule) {
    auto origin = parseOrigin(text);
    if (!origin) {
      issue("origin", origin.error().message, origin.error().hint);
      return;
    }
    rule.origin = std::move(*origin);
    for (const std::string& name : hostNames(rule.origin)) {
      const auto [known, added] = owners_.emplace(name, index);
      if (!added) {
        issue("origin", "must not have the host and port of " + path_ + "." + std::to_string(known->second),
              "A guest names a host and a port only: give one rule for each.");
        return;
      }
    }
  }

  void readHeaders(const std::vector<std::pair<std::string, std::string>>& headers, Rule& rule) {
    std::set<std::string> seen;
    for (const auto& [name, value] : headers) {
      if (const std::string_view fault = nameFault(name); !fault.empty()) {
        issue(mayBeRepeated(name) ? headerMember(name) : "headers", fault);
      } else if (!seen.insert(foldedFieldName(name)).second) {
        issue(headerMember(name), "must not differ from another name only by case, or by _ instead of -");
      } else if (const std::string_view wrong = fieldValueFault(value); !wrong.empty()) {
        issue(headerMember(name), wrong);
      } else {
        rule.headers.push_back({lowerCaseAscii(name), latin1(value)});
      }
    }
    std::sort(rule.headers.begin(), rule.headers.end(),
              [](const HeaderField& a, const HeaderField& b) { return a.name < b.name; });
  }

  static std::string_view nameFault(std::string_view name) {
    if (!isHttpToken(name)) {
      return "must be named by an HTTP token";
    }
    return isReservedField(foldedFieldName(name)) ? "must not be in a policy: the gateway makes or drops it" : "";
  }

  void readMethods(const std::optional<std::vector<std::string>>& methods, Rule& rule) {
    for (std::size_t i = 0; methods && i < methods->size(); ++i) {
      if (const std::string_view fault = methodFault((*methods)[i]); !fault.empty()) {
        listIssue("methods", i, fault);
      }
    }
    rule.methods = methods;
    if (rule.methods) {
      sortUnique(*rule.methods);
    }
  }

  void readPaths(const std::optional<std::vector<std::string>>& paths, Rule& rule) {
    for (std::size_t i = 0; paths && i < paths->size(); ++i) {
      if (const std::string_view fault = pathFault((*paths)[i]); !fault.empty()) {
        listIssue("pathPrefixes", i, fault);
      }
    }
    rule.pathPrefixes = paths;
    if (rule.pathPrefixes) {
      sortUnique(*rule.pathPrefixes);
    }
  }

  template <class Names>
  void readNames(const char* list, const std::vector<std::string>& names, const Names& always,
                 std::vector<std::string>& out) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (const std::string_view fault = nameFault(names[i]); !fault.empty()) {
        listIssue(list, i, fault);
      } else if (std::string lower = lowerCaseAscii(names[i]); !holds(always, lower)) {
        out.push_back(std::move(lower));
      }
    }
    sortUnique(out);
  }

  // A guest's field of the same name gives way to the injected one. One that an upstream may read as the same name
  // would stand beside it.
  void separateNames(const Rule& rule, const std::vector<std::string>& requestHeaders) {
    for (const HeaderField& field : rule.headers) {
      const std::string folded = foldedFieldName(field.name);
      const auto clashes = [&](std::string_view name) {
        return foldedFieldName(name) == folded && lowerCaseAscii(name) != field.name;
      };
      for (std::size_t i = 0; i < requestHeaders.size(); ++i) {
        if (clashes(requestHeaders[i])) {
          listIssue("requestHeaders", i, "must not differ from an injected header only by _ instead of -");
        }
      }
      if (std::any_of(kAlwaysSent.begin(), kAlwaysSent.end(), clashes)) {
        issue(headerMember(field.name), "must not differ from a header that always travels only by _ instead of -");
      }
    }
  }

  const std::string path_;
  std::string rulePath_;
  std::map<std::string, std::size_t> owners_;
  std::vector<ValidationIssue> issues_;
  std::string hint_;
};

}  // namespace

bool Rule::allowsMethod(std::string_view method) const {
  return !holds(kRefusedMethods, method) && (!methods || holds(*methods, method));
}

bool Rule::allowsPath(std::string_view path) const {
  const auto covers = [&](const std::string& prefix) {
    return path.substr(0, prefix.size()) == prefix &&
           (prefix.back() == '/' || path.size() == prefix.size() || path[prefix.size()] == '/');
  };
  return !pathPrefixes || std::any_of(pathPrefixes->begin(), pathPrefixes->end(), covers);
}

NetworkPolicy NetworkPolicy::allowAll() {
  NetworkPolicy policy;
  policy.kind_ = Kind::kAllowAll;
  return policy;
}

Result<NetworkPolicy> NetworkPolicy::allowList(const std::vector<RuleInput>& rules, std::string_view path) {
  RuleReader reader(path);
  auto list = std::make_shared<AllowList>();
  for (std::size_t i = 0; i < rules.size() && !reader.full(); ++i) {
    list->rules.push_back(reader.read(rules[i], i));
  }
  if (reader.failed()) {
    return std::move(reader).error();
  }
  std::sort(list->rules.begin(), list->rules.end(),
            [](const Rule& a, const Rule& b) { return a.origin.text() < b.origin.text(); });
  for (std::size_t i = 0; i < list->rules.size(); ++i) {
    for (std::string& name : hostNames(list->rules[i].origin)) {
      list->byHost.emplace(std::move(name), i);
    }
  }
  NetworkPolicy policy;
  policy.kind_ = Kind::kAllowList;
  policy.list_ = std::move(list);
  return policy;
}

std::span<const Rule> NetworkPolicy::rules() const {
  return list_ ? std::span<const Rule>(list_->rules) : std::span<const Rule>();
}

const Rule* NetworkPolicy::ruleFor(const std::string& canonicalHost) const {
  if (!list_) {
    return nullptr;
  }
  const auto found = list_->byHost.find(canonicalHost);
  return found != list_->byHost.end() ? &list_->rules[found->second] : nullptr;
}

bool operator==(const NetworkPolicy& a, const NetworkPolicy& b) {
  if (a.kind_ != b.kind_ || a.list_ == b.list_) {
    return a.kind_ == b.kind_;
  }
  return a.list_->rules == b.list_->rules;
}

std::string_view nameOf(NetworkPolicy::Kind kind) {
  switch (kind) {
    case NetworkPolicy::Kind::kDenyAll:
      return "deny-all";
    case NetworkPolicy::Kind::kAllowAll:
      return "allow-all";
    case NetworkPolicy::Kind::kAllowList:
      return "allow-list";
  }
  return "";
}

}  // namespace stitchkit
