// What travels between guest and upstream, and what the gateway answers itself.
#include "gateway/forwarding.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "tests/gateway/policies.h"

namespace stitchkit {
namespace {

using testing::allowing;
using Fields = std::vector<HeaderField>;

GuestRequest asked(const std::string& method, const std::string& target, Fields fields) {
  GuestRequest request;
  request.method = method;
  request.target = target;
  request.fields = std::move(fields);
  request.keepAlive = true;
  return request;
}

GuestRequest get(const std::string& target, Fields more = {}) {
  more.insert(more.begin(), {"host", "a.example"});
  return asked("GET", target, std::move(more));
}

/// "200" when it is let through, else status, body, and the reason for the host.
std::string judged(const GuestRequest& request, const NetworkPolicy& policy) {
  const auto result = admit(request, policy);
  const auto* refusal = std::get_if<Refusal>(&result);
  if (refusal == nullptr) {
    return "200";
  }
  CHECK(refusal->reason.empty() == refusal->origin.empty());
  return std::to_string(refusal->status) + " " + refusal->body +
         (refusal->reason.empty() ? "" : " | " + refusal->reason);
}

const std::string kDenied = "403 Sandbox network denied";
const std::string kFailed = "502 Sandbox upstream request failed";
const std::string kInvalid = "400 The request is not valid HTTP/1.1";

/// The fields of the upstream's request that have this name.
Fields sentFields(const GuestRequest& request, const NetworkPolicy& policy, const std::string& name) {
  const auto admission = std::get<Admission>(admit(request, policy));
  const UpstreamRequest made = upstreamRequest(request, admission);
  Fields found;
  for (const HeaderField& field : made.fields) {
    if (field.name == name) {
      found.push_back(field);
    }
  }
  return found;
}

const NetworkPolicy& keyed() {
  static const NetworkPolicy policy = allowing("http://a.example", [](RuleInput& rule) {
    rule.headers = {{"X-Key", "S"}};
    rule.requestHeaders = {"x-more", "x-own", "cookie"};
    rule.responseHeaders = {"set-cookie", "x-reply"};
  });
  return policy;
}

TEST_CASE("a host is asked for once, by a rule's name") {
  const NetworkPolicy policy = allowing("http://a.example");
  CHECK(judged(get("/"), policy) == "200");
  CHECK(judged(asked("GET", "/", {{"host", "A.EXAMPLE:80"}}), policy) == "200");
  CHECK(judged(asked("GET", "/", {}), policy) == kDenied);
  CHECK(judged(get("/", {{"host", "a.example"}}), policy) == kDenied);
  for (const char* host :
       {"", "b.example", "a.example.", "a.example:8080", "a.example:080", "xa.example", "a.example.test", "x@a.example",
        "a.example:80:80", "a.example ", "a.example,b.example", "a%2eexample", "127.0.0.1"}) {
    CHECK(judged(asked("GET", "/", {{"host", host}}), policy) == kDenied);
  }
  CHECK(judged(get("/"), NetworkPolicy::denyAll()) == kDenied);
  CHECK(judged(get("/"), NetworkPolicy::allowAll()) == kDenied);
}

TEST_CASE("methods that tunnel, echo or carry a body they should not are refused") {
  const NetworkPolicy policy = allowing("http://a.example");
  CHECK(judged(asked("CONNECT", "a.example:80", {{"host", "a.example"}}), policy) == kDenied);
  CHECK(judged(asked("CONNECT", "/", {{"host", "a.example"}}), policy) == kDenied);
  CHECK(judged(asked("TRACE", "/", {{"host", "a.example"}}), policy) == kFailed + " | TRACE is never passed on");
  CHECK(judged(asked("OPTIONS", "*", {{"host", "a.example"}}), policy) == kDenied);
  for (const char* method : {"GET", "HEAD"}) {
    GuestRequest request = asked(method, "/", {{"host", "a.example"}});
    request.contentLength = 1;
    CHECK(judged(request, policy) == kFailed + " | " + method + " with a body is not passed on");
    request.contentLength = 0;
    CHECK(judged(request, policy) == "200");
    request.contentLength.reset();
    request.chunked = true;
    CHECK(judged(request, policy) == kFailed + " | " + method + " with a body is not passed on");
  }
  GuestRequest remove = asked("DELETE", "/", {{"host", "a.example"}});
  CHECK(judged(remove, policy) == "200");
  remove.contentLength = 1;
  CHECK(judged(remove, policy) == "200");
  const NetworkPolicy reading = allowing("http://a.example", [](RuleInput& rule) { rule.methods = {{"GET"}}; });
  CHECK(judged(get("/"), reading) == "200");
  CHECK(judged(asked("HEAD", "/", {{"host", "a.example"}}), reading) == kDenied);
  CHECK(judged(asked("POST", "/", {{"host", "a.example"}}), reading) == kDenied);
}

TEST_CASE("a target is judged in the form in which it is sent") {
  const NetworkPolicy policy = allowing("http://a.example", [](RuleInput& rule) {
    rule.pathPrefixes = {{"/v1", "/files/"}};
  });
  const auto sent = [&](const std::string& target) {
    const auto result = admit(get(target), policy);
    const auto* admission = std::get_if<Admission>(&result);
    return admission != nullptr ? admission->target : judged(get(target), policy);
  };
  CHECK(sent("/v1") == "/v1");
  CHECK(sent("/v1/x?y=%2f") == "/v1/x?y=%2f");
  CHECK(sent("/v1?x") == "/v1?x");
  CHECK(sent("/v2/../v1/./x") == "/v1/x");
  CHECK(sent("/%2e%2e/v1/x") == "/v1/x");
  for (const char* target : {"/", "/v10", "/v1/../v2", "/v1/%2e%2E/v2", "/V1", "/%76%31", "/files", "/v1%2fx",
                             "/v1/%5cx", "/v1/%00", "/v1/..;/x", "*", "//v1", "http://a.example/v1"}) {
    CHECK(sent(target) == kDenied);
  }
  CHECK(sent("/v1/\\..\\x") == kFailed + " | The target holds a backslash");
  for (const char* target : {"/v1/%zz", "/v1#x", ""}) {
    CHECK(sent(target) == kInvalid);
  }
  CHECK(judged(get("/a%2fb"), allowing("http://a.example")) == "200");
  CHECK(judged(get("/", {{"content-type", "a/b"}, {"content-type", "c/d"}}), policy) == kInvalid);
}

TEST_CASE("exactly one value of an injected header goes out, whatever the guest sends") {
  const Fields one{{"x-key", "S"}};
  for (const Fields& tricks :
       {Fields{}, Fields{{"x-key", "mine"}}, Fields{{"x-key", "mine"}, {"x-key", "again"}},
        Fields{{"connection", "X-Key"}}, Fields{{"connection", "close, x-key"}, {"x-key", "mine"}},
        Fields{{"connection", "x-key"}, {"connection", "close"}}, Fields{{"proxy-connection", "x-key"}},
        Fields{{"x_key", "mine"}}}) {
    CHECK(sentFields(get("/", tricks), keyed(), "x-key") == one);
    CHECK(sentFields(get("/", tricks), keyed(), "x_key").empty());
  }
  const NetworkPolicy own = allowing("http://a.example", [](RuleInput& rule) {
    rule.headers = {{"Content-Type", "a/injected"}, {"accept", "injected"}, {"user-agent", "U"}};
  });
  const GuestRequest request =
      get("/", {{"content-type", "a/guest"}, {"accept", "guest"}, {"accept", "guest"}, {"user-agent", "guest"}});
  CHECK(sentFields(request, own, "content-type") == Fields{{"content-type", "a/injected"}});
  CHECK(sentFields(request, own, "accept") == Fields{{"accept", "injected"}});
  CHECK(sentFields(request, own, "user-agent") == Fields{{"user-agent", "U"}});
}

TEST_CASE("only what the rule names travels to the upstream") {
  GuestRequest request = get("/", {{"content-type", "a/b"},
                                   {"accept", "one"},
                                   {"accept", "two"},
                                   {"x-more", "1"},
                                   {"x-more", "2"},
                                   {"x-other", "no"},
                                   {"cookie", "c"},
                                   {"authorization", "no"},
                                   {"proxy-authorization", "no"},
                                   {"te", "trailers"},
                                   {"keep-alive", "5"},
                                   {"upgrade", "h2c"},
                                   {"http2-settings", "x"},
                                   {"expect", "100-continue"},
                                   {"accept-encoding", "gzip"},
                                   {"user-agent", "guest"},
                                   {"x-own", "hop"},
                                   {"connection", "x-own, Upgrade"},
                                   {"transfer-encoding", "chunked"},
                                   {"forwarded", "no"},
                                   {"origin", "no"}});
  const auto admission = std::get<Admission>(admit(request, keyed()));
  request.body = "body";
  const UpstreamRequest made = upstreamRequest(request, admission);
  CHECK(made.method == "GET");
  CHECK(made.target == "/");
  CHECK(made.body == "body");
  CHECK(made.fields == Fields{{"host", "a.example"},
                              {"content-type", "a/b"},
                              {"accept", "one"},
                              {"accept", "two"},
                              {"x-more", "1"},
                              {"x-more", "2"},
                              {"cookie", "c"},
                              {"x-key", "S"},
                              {"accept-encoding", "identity"},
                              {"user-agent", "stitchkit-sandbox"}});
  CHECK(sentFields(asked("GET", "/", {{"host", "A.EXAMPLE:80"}}), keyed(), "host") == Fields{{"host", "a.example"}});
  // Spelled in any way, several fields, empty parts.
  CHECK(sentFields(get("/", {{"x-more", "1"}, {"connection", ",, X-MORE ,"}}), keyed(), "x-more").empty());
  CHECK(sentFields(get("/", {{"x-more", "1"}, {"connection", "close"}, {"connection", "\tx-more"}}), keyed(), "x-more")
            .empty());
}

UpstreamResponse answer(unsigned status, Fields fields, std::string body = "") {
  return {status, std::move(fields), std::move(body), true};
}

TEST_CASE("only what the rule names travels back to the guest") {
  const Rule& rule = keyed().rules()[0];
  const UpstreamResponse response = answer(200,
                                           {{"content-type", "a/b"},
                                            {"set-cookie", "a=1"},
                                            {"x-other", "no"},
                                            {"set-cookie", "b=2"},
                                            {"x-reply", "\xE9"},
                                            {"content-length", "999"},
                                            {"connection", "close"},
                                            {"transfer-encoding", "chunked"},
                                            {"server", "no"}},
                                           "hello");
  CHECK(guestResponse(response, rule, false, true) ==
        "HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-type: a/b\r\nset-cookie: a=1\r\nset-cookie: "
        "b=2\r\nx-reply: \xE9\r\n"
        "content-length: 5\r\n\r\nhello");
  CHECK(guestResponse(answer(404, {}), rule, false, false) ==
        "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
}

TEST_CASE("a response's field with control characters is dropped") {
  const Rule& rule = keyed().rules()[0];
  const UpstreamResponse response = answer(200, {{"x-reply", "a\r\nx: y"},
                                                 {"x-reply", std::string("a\0b", 3)},
                                                 {"x-reply", "a\x7f"},
                                                 {"content-type", "a\nb"},
                                                 {"x-reply", "a\tb"}});
  CHECK(guestResponse(response, rule, false, true) ==
        "HTTP/1.1 200 OK\r\nconnection: keep-alive\r\nx-reply: a\tb\r\ncontent-length: 0\r\n\r\n");
}

TEST_CASE("HEAD keeps the upstream's length, and 204 has none") {
  const Rule& rule = keyed().rules()[0];
  CHECK(guestResponse(answer(200, {{"content-length", "999"}}), rule, true, true) ==
        "HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 999\r\n\r\n");
  CHECK(guestResponse(answer(200, {{"transfer-encoding", "chunked"}}), rule, true, true) ==
        "HTTP/1.1 200 OK\r\nconnection: keep-alive\r\n\r\n");
  CHECK(guestResponse(answer(204, {{"content-length", "0"}}), rule, false, true) ==
        "HTTP/1.1 204 No Content\r\nconnection: keep-alive\r\n\r\n");
}

TEST_CASE("a status without words of its own is answered all the same") {
  const Rule& rule = keyed().rules()[0];
  for (const unsigned status : {299U, 418U, 499U, 520U, 599U}) {
    const std::string text = guestResponse(answer(status, {}), rule, false, true);
    INFO(text);
    CHECK(text.starts_with("HTTP/1.1 " + std::to_string(status) + " "));
    CHECK(text.ends_with("\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n"));
  }
}

TEST_CASE("refusals say what they are, and nothing more") {
  const auto text = [](const Refusal& refusal) { return guestResponse(refusal, false, true); };
  const auto expected = [](const std::string& line, const std::string& body) {
    return "HTTP/1.1 " + line +
           "\r\nconnection: keep-alive\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
  };
  CHECK(text(deniedRefusal()) == expected("403 Forbidden", "Sandbox network denied"));
  CHECK(text(busyRefusal()) == expected("503 Service Unavailable", "Sandbox broker busy"));
  CHECK(text(upstreamRefusal("a reason", "http://a")) ==
        expected("502 Bad Gateway", "Sandbox upstream request failed"));
  CHECK(text(framingRefusal(400)) == expected("400 Bad Request", "The request is not valid HTTP/1.1"));
  CHECK(text(framingRefusal(408)) == expected("408 Request Timeout", "The request took too long"));
  CHECK(text(framingRefusal(413)) ==
        expected("413 Payload Too Large", "The request body is larger than the sandbox allows"));
  CHECK(text(framingRefusal(417)) == expected("417 Expectation Failed", "The only expectation is 100-continue"));
  CHECK(text(framingRefusal(431)) ==
        expected("431 Request Header Fields Too Large", "The request header is larger than 16 KiB or 100 fields"));
  const std::string head = guestResponse(deniedRefusal(), true, false);
  CHECK(head.ends_with("content-length: 22\r\n\r\n"));
  CHECK(head.find("connection: close\r\n") != std::string::npos);
}

}  // namespace
}  // namespace stitchkit
