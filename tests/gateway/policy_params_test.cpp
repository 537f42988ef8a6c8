// A policy's whole way from the wire: the schema's check, then decode().
#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "backend/requests.h"
#include "rpc/message.h"
#include "schema/openrpc.h"

namespace stitchkit {
namespace {

using Json = nlohmann::json;

/// A policy, or why there is none.
Result<NetworkPolicy> read(const Json& policy) {
  const Json params = {{"handle", "h1"}, {"network", policy}};
  Result<boost::json::object> checked =
      OpenRpc::instance().checkParams("session.setNetworkPolicy", boost::json::parse(params.dump()));
  if (!checked) {
    return std::move(checked).error();
  }
  PolicyParams out;
  if (Result<void> decoded = decode(*checked, out); !decoded) {
    return std::move(decoded).error();
  }
  return out.network;
}

/// Everything of an error that goes to the host or the log.
std::string everyWord(const Error& error) {
  return errorText(1, error) + error.privateDetail;
}

std::string firstIssuePath(const Error& error) {
  CHECK(error.kind == ErrorKind::kValidation);
  return Json::parse(errorText(1, error))["error"]["data"]["details"]["issues"][0]["path"];
}

Json ruleWith(const std::string& member, Json value) {
  Json rule = {{"origin", "http://a"}};
  rule[member] = std::move(value);
  return {{"allow", {rule}}};
}

}  // namespace

TEST_CASE("policies of the reference implementation", "[params]") {
  std::ifstream file(TEST_DATA "/golden_policies.jsonl");
  REQUIRE(file);
  int rows = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    const Json row = Json::parse(line);
    INFO(line);
    const Result<NetworkPolicy> policy = read(row["policy"]);
    CHECK(policy.has_value() == !row.contains("issue"));
    if (policy.has_error() && row.contains("issue")) {
      CHECK(firstIssuePath(policy.error()) == row["issue"]);
    }
    // Where we differ we say why.
    CHECK((row["golden"] == "accepts") == (policy.has_value() || row.contains("differs")));
  }
  CHECK(rows == 110);
}

TEST_CASE("a policy of every member", "[params]") {
  const Json rule = {{"origin", "https://A.example"},
                     {"headers", {{"Authorization", "Bearer \xC3\xBC"}}},
                     {"methods", {"GET"}},
                     {"pathPrefixes", {"/v1"}},
                     {"requestHeaders", {"X-A"}},
                     {"responseHeaders", {"X-B"}},
                     {"maxRequestBytes", 0},
                     {"maxResponseBytes", 67108864},
                     {"reflection", "refuse"}};
  const Result<NetworkPolicy> policy = read({{"allow", {rule}}});
  REQUIRE(policy.has_value());
  const Rule* ready = policy->ruleFor("a.example");
  REQUIRE(ready != nullptr);
  CHECK(ready->headers == std::vector<HeaderField>{{"authorization", "Bearer \xFC"}});
  CHECK(ready->allowsMethod("GET"));
  CHECK_FALSE(ready->allowsMethod("PUT"));
  CHECK(ready->allowsPath("/v1"));
  CHECK_FALSE(ready->allowsPath("/v2"));
  CHECK(ready->requestHeaders == std::vector<std::string>{"x-a"});
  CHECK(ready->responseHeaders == std::vector<std::string>{"x-b"});
  CHECK(ready->maxRequestBytes == 0);
  CHECK(ready->maxResponseBytes == 67108864);
  CHECK(ready->reflection == Reflection::kRefuse);
}

TEST_CASE("what a rule leaves out", "[params]") {
  const Result<NetworkPolicy> policy = read({{"allow", {{{"origin", "http://a"}}}}});
  REQUIRE(policy.has_value());
  const Rule* rule = policy->ruleFor("a");
  REQUIRE(rule != nullptr);
  CHECK(rule->headers.empty());
  CHECK_FALSE(rule->methods.has_value());
  CHECK_FALSE(rule->pathPrefixes.has_value());
  CHECK(rule->maxRequestBytes == 1048576);
  CHECK(rule->maxResponseBytes == 1048576);
  CHECK(rule->reflection == Reflection::kRedact);
  CHECK(read("allow-all")->kind() == NetworkPolicy::Kind::kAllowAll);
  CHECK(read("deny-all")->kind() == NetworkPolicy::Kind::kDenyAll);
  CHECK(read(ruleWith("reflection", "allow"))->ruleFor("a")->reflection == Reflection::kAllow);
}

TEST_CASE("ceilings of bodies", "[params]") {
  for (const char* member : {"maxRequestBytes", "maxResponseBytes"}) {
    CHECK(read(ruleWith(member, 0)).has_value());
    CHECK(read(ruleWith(member, 67108864)).has_value());
    for (const Json& bad : {Json(-1), Json(67108865), Json(1.5), Json("1"), Json(nullptr)}) {
      INFO(bad);
      const auto policy = read(ruleWith(member, bad));
      REQUIRE(policy.has_error());
      CHECK(firstIssuePath(policy.error()) == std::string("network.allow.0.") + member);
    }
  }
}

TEST_CASE("a create's policy is refused before anything is done", "[params]") {
  const Json params = {{"template", {{"template", "t"}}}, {"network", ruleWith("headers", {{"host", "v"}})}};
  Result<boost::json::object> checked =
      OpenRpc::instance().checkParams("backend.create", boost::json::parse(params.dump()));
  REQUIRE(checked.has_value());
  CreateParams out;
  const Result<void> decoded = decode(*checked, out);
  REQUIRE(decoded.has_error());
  CHECK(firstIssuePath(decoded.error()) == "network.allow.0.headers.host");
}

TEST_CASE("no error repeats a header's value", "[params]") {
  const std::string secret = "S3CR3T-value";
  const std::vector<Json> policies = {
      ruleWith("headers", {{"x-a", secret + "\n"}}),
      ruleWith("headers", {{"x-a", " " + secret}}),
      ruleWith("headers", {{"x-a", secret + "\xE2\x82\xAC"}}),
      ruleWith("headers", {{"x y", secret}}),
      ruleWith("headers", {{"host", secret}}),
      ruleWith("headers", {{"x-a", secret}, {"x_a", secret}}),
      ruleWith("headers", {{"content_type", secret}}),
      // Of another type than a string: the schema's check speaks.
      ruleWith("headers", {{"x-a", {secret}}}),
      ruleWith("headers", {{"x-a", {{secret, 1}}}}),
      ruleWith("headers", {{"x-a", {{"value", secret}}}}),
      ruleWith("headers", {secret}),
      ruleWith("headers", secret),
      ruleWith("headers", {{{"name", "x-a"}, {"value", secret}}}),
      ruleWith("header", {{"x-a", secret}}),
      // Right by itself, beside a fault elsewhere.
      {{"allow", {{{"origin", "nope"}, {"headers", {{"x-a", secret}}}}}}},
      {{"allow", {{{"origin", "http://a"}, {"headers", {{"x-a", secret}}}, {"methods", {"get"}}}}}},
      {{"allow", {{{"origin", "http://a"}, {"headers", {{"x-a", secret}}}, {"reflection", "x"}}}}},
      {{"allow", {{{"origin", "http://a"}, {"headers", {{"x_a", secret}}}, {"requestHeaders", {"x-a"}}}}}},
      {{"allow", {{{"headers", {{"x-a", secret}}}}}}},
  };
  for (const Json& policy : policies) {
    INFO(policy.dump());
    const Result<NetworkPolicy> refused = read(policy);
    REQUIRE(refused.has_error());
    CHECK_FALSE(everyWord(refused.error()).empty());
    CHECK(everyWord(refused.error()).find(secret) == std::string::npos);
  }
}

}  // namespace stitchkit
