// Policies: what a rule may say, what it becomes, and which rule a guest's Host finds.
#include "gateway/policy.h"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

namespace stitchkit {
namespace {

using Strings = std::vector<std::string>;
using Issues = std::vector<ValidationIssue>;

RuleInput ruleTo(std::string origin) {
  RuleInput rule;
  rule.origin = std::move(origin);
  rule.maxRequestBytes = 10;
  rule.maxResponseBytes = 20;
  return rule;
}

Error errorOf(const std::vector<RuleInput>& rules) {
  const Result<NetworkPolicy> policy = NetworkPolicy::allowList(rules, "network");
  REQUIRE(policy.has_error());
  CHECK(policy.error().kind == ErrorKind::kValidation);
  return policy.error();
}

Issues issuesIn(const Error& error) {
  REQUIRE(error.details.size() == 1);
  CHECK(error.details[0].first == "issues");
  return std::get<Issues>(error.details[0].second);
}

Strings issuePaths(const std::vector<RuleInput>& rules) {
  Strings paths;
  for (const ValidationIssue& issue : issuesIn(errorOf(rules))) {
    CHECK_FALSE(issue.message.empty());
    paths.push_back(issue.path);
  }
  return paths;
}

NetworkPolicy policyOf(const std::vector<RuleInput>& rules) {
  const Result<NetworkPolicy> policy = NetworkPolicy::allowList(rules, "network");
  INFO((policy ? "" : policy.error().message));
  REQUIRE(policy.has_value());
  return *policy;
}

Rule onlyRule(const RuleInput& input) {
  const NetworkPolicy policy = policyOf({input});
  const Rule* rule = policy.ruleFor("a");
  REQUIRE(rule != nullptr);
  return *rule;
}

bool finds(const NetworkPolicy& policy, std::string_view host) {
  const std::string canonical = canonicalHostHeader(host);
  return policy.ruleFor(canonical) != nullptr;
}

}  // namespace

TEST_CASE("policy: the three kinds", "[policy]") {
  CHECK(NetworkPolicy().kind() == NetworkPolicy::Kind::kDenyAll);
  CHECK(NetworkPolicy::denyAll() == NetworkPolicy());
  CHECK(NetworkPolicy::allowAll().kind() == NetworkPolicy::Kind::kAllowAll);
  CHECK_FALSE(NetworkPolicy::allowAll() == NetworkPolicy::denyAll());
  CHECK(NetworkPolicy::denyAll().ruleFor("a") == nullptr);
  CHECK(NetworkPolicy::allowAll().ruleFor("a") == nullptr);
  const NetworkPolicy empty = policyOf({});
  CHECK(empty.kind() == NetworkPolicy::Kind::kAllowList);
  CHECK(empty.ruleFor("a") == nullptr);
  CHECK_FALSE(empty == NetworkPolicy::denyAll());
}

TEST_CASE("policy: a rule made ready", "[policy]") {
  RuleInput input = ruleTo("HTTP://A");
  input.headers = {{"X-Key", "k\xC3\xBC"}, {"Authorization", "Bearer s"}};
  input.methods = Strings{"POST", "GET", "POST"};
  input.pathPrefixes = Strings{"/v2", "/v1", "/v2"};
  input.requestHeaders = {"X-B", "x-a", "x-B", "Accept", "content-type"};
  input.responseHeaders = {"ETag", "Content-Type", "accept"};
  input.reflection = Reflection::kAllow;
  const Rule rule = onlyRule(input);
  CHECK(rule.origin.text() == "http://a");
  CHECK(rule.headers == std::vector<HeaderField>{{"authorization", "Bearer s"}, {"x-key", "k\xFC"}});
  CHECK(*rule.methods == Strings{"GET", "POST"});
  CHECK(*rule.pathPrefixes == Strings{"/v1", "/v2"});
  CHECK(rule.requestHeaders == Strings{"x-a", "x-b"});
  CHECK(rule.responseHeaders == Strings{"accept", "etag"});
  CHECK(rule.maxRequestBytes == 10);
  CHECK(rule.maxResponseBytes == 20);
  CHECK(rule.reflection == Reflection::kAllow);
}

TEST_CASE("policy: the rule outlives its policy in a copy", "[policy]") {
  auto policy = std::make_unique<NetworkPolicy>(policyOf({ruleTo("http://a")}));
  const NetworkPolicy copy = *policy;
  const Rule* rule = copy.ruleFor("a");
  policy.reset();
  REQUIRE(rule != nullptr);
  CHECK(rule->origin.host == "a");
}

TEST_CASE("policy: equal when it means the same", "[policy]") {
  RuleInput a = ruleTo("http://a");
  a.headers = {{"X-A", "1"}, {"x-b", "2"}};
  a.methods = Strings{"GET", "PUT"};
  RuleInput same = ruleTo("HTTP://A:80/");
  same.headers = {{"x-B", "2"}, {"x-a", "1"}};
  same.methods = Strings{"PUT", "GET", "GET"};
  const RuleInput b = ruleTo("http://b");
  CHECK(policyOf({a, b}) == policyOf({b, same}));
  CHECK_FALSE(policyOf({a, b}) == policyOf({a}));
  RuleInput other = a;
  other.headers[0].second = "9";
  CHECK_FALSE(policyOf({a}) == policyOf({other}));
  other = a;
  other.methods.reset();
  CHECK_FALSE(policyOf({a}) == policyOf({other}));
}

TEST_CASE("policy: the Host that finds a rule", "[policy]") {
  const NetworkPolicy policy =
      policyOf({ruleTo("http://plain.test"), ruleTo("https://secure.test"), ruleTo("http://api.example.test:8080"),
                ruleTo("https://[::1]"), ruleTo("http://10.0.0.1:443"), ruleTo("http://two.test"),
                ruleTo("http://two.test:81")});
  for (const char* host : {"plain.test", "PLAIN.test:80", "secure.test", "secure.test:443", "api.example.test:8080",
                           "API.EXAMPLE.TEST:8080", "[::1]", "[::1]:443", "10.0.0.1:443", "two.test:81"}) {
    INFO(host);
    CHECK(finds(policy, host));
  }
  for (const char* host : {"plain.test:443",
                           "plain.test:8080",
                           "secure.test:80",
                           "api.example.test",
                           "api.example.test:80",
                           "api.example.test:08080",
                           "api.example.test.:8080",
                           "api.example.test..:8080",
                           "x@api.example.test:8080",
                           "api.example.test:8080@evil.test",
                           "evil.test#.api.example.test:8080",
                           "evil.test%23.api.example.test:8080",
                           "api.example.test.evil.test:8080",
                           "xapi.example.test:8080",
                           "api%2eexample.test:8080",
                           "api\xE3\x80\x82"
                           "example.test:8080",
                           "\xD0\xB0pi.example.test:8080",
                           "api.example.test:8080\t",
                           "[0:0:0:0:0:0:0:1]",
                           "[::1]:80",
                           "10.0.0.1",
                           "10.1:443",
                           "0x0a000001:443",
                           "167772161:443",
                           "[::ffff:10.0.0.1]:443",
                           "test",
                           "",
                           "two.test:82"}) {
    INFO(host);
    CHECK_FALSE(finds(policy, host));
  }
  CHECK(policy.ruleFor("two.test")->origin.port == 80);
  CHECK(policy.ruleFor("two.test:80")->origin.port == 80);
  CHECK(policy.ruleFor("two.test:81")->origin.port == 81);
}

TEST_CASE("policy: one rule a host and port", "[policy]") {
  const std::vector<std::pair<std::string, std::string>> clashes = {
      {"http://a", "http://a"},      {"http://a", "http://A:80/"},      {"http://a", "https://a"},
      {"https://a", "http://a:443"}, {"http://a:443", "https://a"},     {"http://a:9", "https://a:9"},
      {"http://a", "https://a:80"},  {"http://[::1]", "http://[0::1]"},
  };
  for (const auto& [first, second] : clashes) {
    INFO(first << " " << second);
    CHECK(issuePaths({ruleTo(first), ruleTo(second)}) == Strings{"network.allow.1.origin"});
    CHECK_THAT(issuesIn(errorOf({ruleTo("http://x"), ruleTo(first), ruleTo(second)}))[0].message,
               Catch::Contains("network.allow.1"));
  }
  for (const auto& [first, second] : std::vector<std::pair<std::string, std::string>>{{"http://a", "http://b"},
                                                                                      {"http://a", "http://a:81"},
                                                                                      {"http://a", "https://a:444"},
                                                                                      {"http://a", "https://a:443"},
                                                                                      {"https://a", "http://a:80"}}) {
    INFO(first << " " << second);
    // A bare Host means the scheme's own port, and both of these have one.
    const bool bothBare = second == "https://a:443" || second == "http://a:80";
    CHECK(NetworkPolicy::allowList({ruleTo(first), ruleTo(second)}, "network").has_value() != bothBare);
  }
}

TEST_CASE("policy: names of headers that are refused", "[policy]") {
  for (const char* name : {"host",
                           "Connection",
                           "CONTENT-LENGTH",
                           "transfer-encoding",
                           "proxy-authorization",
                           "proxy-connection",
                           "upgrade",
                           "trailer",
                           "te",
                           "keep-alive",
                           "expect",
                           "accept-encoding",
                           "content-encoding",
                           "proxy-authenticate",
                           "http2-settings",
                           "content_length",
                           "Transfer_Encoding",
                           "keep_alive",
                           "",
                           "x y",
                           "x:",
                           "x\r\ny",
                           "x\xC3\xBC",
                           "a\"b",
                           "a/b",
                           "a@b",
                           "(a)"}) {
    INFO(name);
    RuleInput input = ruleTo("http://a");
    input.headers = {{name, "v"}};
    CHECK(issuePaths({input}) == Strings{std::string("network.allow.0.headers.") + name});
    input = ruleTo("http://a");
    input.requestHeaders = {"x-a", name};
    CHECK(issuePaths({input}) == Strings{"network.allow.0.requestHeaders.1"});
    input = ruleTo("http://a");
    input.responseHeaders = {name};
    CHECK(issuePaths({input}) == Strings{"network.allow.0.responseHeaders.0"});
  }
  for (const char* name : {"authorization", "Cookie", "user-agent", "content-type", "accept", "a.b", "__proto__",
                           "constructor", "!#$%&'*+.^_`|~", "x"}) {
    INFO(name);
    RuleInput input = ruleTo("http://a");
    input.headers = {{name, "v"}};
    input.requestHeaders = {"Location"};
    input.responseHeaders = {"set-cookie", "retry-after"};
    CHECK(NetworkPolicy::allowList({input}, "network").has_value());
  }
}

TEST_CASE("policy: names that an upstream may take for one another", "[policy]") {
  RuleInput input = ruleTo("http://a");
  input.headers = {{"X-Key", "1"}, {"x-key", "2"}};
  CHECK(issuePaths({input}) == Strings{"network.allow.0.headers.x-key"});
  input.headers = {{"X-Key", "1"}, {"X_Key", "2"}};
  CHECK(issuePaths({input}) == Strings{"network.allow.0.headers.X_Key"});
  input.headers = {{"X_Key", "1"}};
  input.requestHeaders = {"x-other", "x-key"};
  CHECK(issuePaths({input}) == Strings{"network.allow.0.requestHeaders.1"});
  input.requestHeaders = {"X-KEY"};
  CHECK(issuePaths({input}) == Strings{"network.allow.0.requestHeaders.0"});
  input.requestHeaders = {};
  input.headers = {{"Content_Type", "1"}};
  CHECK(issuePaths({input}) == Strings{"network.allow.0.headers.content_type"});
  // The same name: the injected header wins over the guest's.
  input.headers = {{"X-Key", "1"}, {"Accept", "2"}};
  input.requestHeaders = {"x-key"};
  CHECK(onlyRule(input).headers.size() == 2);
  // Two rules are apart.
  input.requestHeaders = {};
  RuleInput other = ruleTo("http://b");
  other.headers = {{"X_Key", "1"}};
  CHECK(policyOf({input, other}).kind() == NetworkPolicy::Kind::kAllowList);
}

TEST_CASE("policy: values are refused without being repeated", "[policy]") {
  for (const std::string& value :
       {std::string("s3cr3t\r\nx: y"), std::string("s3cr3t\n"), std::string("s3cr3t\0x", 8), std::string(" s3cr3t"),
        std::string("s3cr3t "), std::string("s3cr3t\x01"), std::string("s3cr3t\x7f"), std::string("s3cr3t\xE2\x82\xAC"),
        std::string("\ts3cr3t")}) {
    RuleInput input = ruleTo("http://a");
    input.headers = {{"x-a", value}};
    const Result<NetworkPolicy> policy = NetworkPolicy::allowList({input}, "network");
    INFO(value);
    REQUIRE(policy.has_error());
    CHECK(issuePaths({input}) == Strings{"network.allow.0.headers.x-a"});
    const Error error = policy.error();
    std::string said = error.message + error.hint + error.privateDetail;
    for (const ValidationIssue& issue : issuesIn(error)) {
      said += issue.path + issue.message;
    }
    CHECK(said.find("s3cr3t") == std::string::npos);
  }
}

TEST_CASE("policy: methods", "[policy]") {
  RuleInput input = ruleTo("http://a");
  input.methods = Strings{"get", "GET", "", "CONNECT", "TRACE", "PRI", "G T", "GET1", "-", "M-SEARCH", "Get"};
  CHECK(issuePaths({input}) ==
        Strings{"network.allow.0.methods.0", "network.allow.0.methods.2", "network.allow.0.methods.3",
                "network.allow.0.methods.4", "network.allow.0.methods.5", "network.allow.0.methods.6",
                "network.allow.0.methods.7", "network.allow.0.methods.8", "network.allow.0.methods.10"});
  input.methods.reset();
  const Rule any = onlyRule(input);
  CHECK(any.allowsMethod("GET"));
  CHECK(any.allowsMethod("PROPFIND"));
  for (const char* never : {"CONNECT", "TRACE", "PRI"}) {
    CHECK_FALSE(any.allowsMethod(never));
  }
  input.methods = Strings{"GET", "M-SEARCH"};
  const Rule some = onlyRule(input);
  CHECK(some.allowsMethod("GET"));
  CHECK(some.allowsMethod("M-SEARCH"));
  CHECK_FALSE(some.allowsMethod("POST"));
  CHECK_FALSE(some.allowsMethod("get"));
  CHECK_FALSE(some.allowsMethod(""));
  input.methods = Strings{};
  CHECK_FALSE(onlyRule(input).allowsMethod("GET"));
}

TEST_CASE("policy: path prefixes that are refused", "[policy]") {
  for (const char* path :
       {"",          "v1",      "//",   "//v1",      "/v1//",  "/a//b", "/.",    "/..",  "/a/.",   "/a/..",
        "/a/./b",    "/a/../b", "/a?b", "/a#b",      "/a%20b", "/a\\b", "/a b",  "/a\n", "/a\x7f", "/\xC3\xBC",
        "/a/..;x/b", "/.;/b",   "*",    "http://a/", "/a\"b",  "/<a>",  "/a{b}", "/`a"}) {
    INFO(path);
    RuleInput input = ruleTo("http://a");
    input.pathPrefixes = Strings{"/ok", path};
    CHECK(issuePaths({input}) == Strings{"network.allow.0.pathPrefixes.1"});
  }
}

TEST_CASE("policy: a prefix ends where a segment ends", "[policy]") {
  const auto allows = [](const Strings& prefixes, std::string_view path) {
    RuleInput input = ruleTo("http://a");
    input.pathPrefixes = prefixes;
    return onlyRule(input).allowsPath(path);
  };
  CHECK(allows({"/"}, "/"));
  CHECK(allows({"/"}, "/any/thing"));
  CHECK(allows({"/v1"}, "/v1"));
  CHECK(allows({"/v1"}, "/v1/"));
  CHECK(allows({"/v1"}, "/v1/x"));
  CHECK_FALSE(allows({"/v1"}, "/v10"));
  CHECK_FALSE(allows({"/v1"}, "/v1;x"));
  CHECK_FALSE(allows({"/v1"}, "/v1%2fx"));
  CHECK_FALSE(allows({"/v1"}, "/V1"));
  CHECK_FALSE(allows({"/v1"}, "/v"));
  CHECK_FALSE(allows({"/v1"}, "/"));
  CHECK_FALSE(allows({"/v1"}, "/x/v1"));
  CHECK(allows({"/v1/"}, "/v1/"));
  CHECK(allows({"/v1/"}, "/v1/x"));
  CHECK_FALSE(allows({"/v1/"}, "/v1"));
  CHECK(allows({"/a/b.c;d:e@f", "/...", "/.well-known"}, "/a/b.c;d:e@f/g"));
  CHECK(allows({"/...", "/.well-known"}, "/.well-known/x"));
  CHECK_FALSE(allows({}, "/"));
  CHECK(onlyRule(ruleTo("http://a")).allowsPath("/any"));
}

TEST_CASE("policy: faults of all rules are told, at most 32", "[policy]") {
  RuleInput bad = ruleTo("nope");
  bad.headers = {{"host", "v"}, {"x", "\n"}};
  bad.methods = Strings{"get"};
  CHECK(issuePaths({bad, ruleTo("http://a"), bad}) ==
        Strings{"network.allow.0.origin", "network.allow.0.headers.host", "network.allow.0.headers.x",
                "network.allow.0.methods.0", "network.allow.2.origin", "network.allow.2.headers.host",
                "network.allow.2.headers.x", "network.allow.2.methods.0"});
  CHECK(issuePaths(std::vector<RuleInput>(1000, bad)).size() == 32);
  CHECK_THAT(errorOf({bad}).message, Catch::Contains("network.allow.0.origin must"));
  CHECK_THAT(errorOf({bad}).hint, Catch::Contains("https://api.example.com"));
  // A name of the caller's is cut.
  bad.headers = {{std::string(100000, ':'), "v"}};
  CHECK(issuesIn(errorOf({bad}))[1].path.size() < 200);
}

}  // namespace stitchkit
