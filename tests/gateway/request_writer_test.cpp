// The bytes of a request to an upstream: what was judged, and nothing of the library's own beside it.
#include "gateway/request_writer.h"

#include <catch2/catch.hpp>

#include <map>
#include <string>

#include "gateway/header_fields.h"

namespace stitchkit {
namespace {

struct Written {
  std::string line;
  std::multimap<std::string, std::string> fields;  // names in lower case
  std::string body;
};

Written written(const UpstreamRequest& request) {
  const std::string bytes = writeRequest(request);
  INFO(bytes.substr(0, 500));
  Written made;
  std::size_t at = bytes.find("\r\n");
  made.line = bytes.substr(0, at);
  for (at += 2; at < bytes.size();) {
    const std::size_t end = bytes.find("\r\n", at);
    REQUIRE(end != std::string::npos);
    if (end == at) {
      made.body = bytes.substr(end + 2);
      return made;
    }
    const std::string line = bytes.substr(at, end - at);
    const std::size_t colon = line.find(": ");
    REQUIRE(colon != std::string::npos);
    made.fields.emplace(lowerCaseAscii(line.substr(0, colon)), line.substr(colon + 2));
    at = end + 2;
  }
  FAIL("no end of the header");
  return made;
}

UpstreamRequest toWrite(const std::string& method, const std::string& target, std::string_view body = {}) {
  return {method,
          target,
          {{"host", "a.example:8080"}, {"accept", "x/y"}, {"accept-encoding", "identity"}, {"user-agent", "u"}},
          body};
}

TEST_CASE("a request without a body is written with its own fields alone") {
  for (const char* method : {"GET", "HEAD", "DELETE", "OPTIONS", "M-SEARCH"}) {
    const Written made = written(toWrite(method, "/a?b=c"));
    CHECK(made.line == std::string(method) + " /a?b=c HTTP/1.1");
    CHECK(made.fields ==
          std::multimap<std::string, std::string>{
              {"host", "a.example:8080"}, {"accept", "x/y"}, {"accept-encoding", "identity"}, {"user-agent", "u"}});
    CHECK(made.body.empty());
  }
}

TEST_CASE("a body is framed by its length, once, and gets no type that nobody gave") {
  std::string body(300000, 'x');
  for (std::size_t i = 0; i < body.size(); ++i) {
    body[i] = static_cast<char>(i * 7);
  }
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE", "QUERY"}) {
    const Written made = written(toWrite(method, "/", body));
    CHECK(made.line == std::string(method) + " / HTTP/1.1");
    CHECK(made.fields.count("content-length") == 1);
    CHECK(made.fields.find("content-length")->second == "300000");
    CHECK(made.fields.count("transfer-encoding") == 0);
    CHECK(made.fields.count("content-type") == 0);
    CHECK(made.fields.count("expect") == 0);
    CHECK(made.body == body);
  }
  for (const char* method : {"POST", "PUT", "PATCH"}) {
    const Written made = written(toWrite(method, "/"));
    CHECK(made.fields.find("content-length")->second == "0");
    CHECK(made.fields.count("content-type") == 0);
  }
}

TEST_CASE("target and values go out as they are") {
  for (const char* target : {"/", "/a%20b%2F?c=%00&d=+", "/?", "/a+b", "/^|[]'()*", "/a?x=http://b/", "/%c3%a4?%"}) {
    CHECK(written(toWrite("GET", target)).line == "GET " + std::string(target) + " HTTP/1.1");
  }
}

TEST_CASE("each field goes out once, its bytes untouched") {
  UpstreamRequest request = toWrite("GET", "/");
  std::string latin1;
  for (int c = 0x20; c < 0x100; ++c) {
    if (c != 0x7f) {
      latin1 += static_cast<char>(c);
    }
  }
  latin1 = "a" + latin1 + "\tz";
  request.fields.push_back({"x-key", latin1});
  request.fields.push_back({"x-two", "1"});
  request.fields.push_back({"x-two", "2"});
  request.fields.push_back({"x-percent", "%0d%0aX: y"});
  const Written made = written(request);
  CHECK(made.fields.count("x-key") == 1);
  CHECK(made.fields.find("x-key")->second == latin1);
  CHECK(made.fields.count("x-two") == 2);
  CHECK(made.fields.find("x-percent")->second == "%0d%0aX: y");
  CHECK(made.fields.size() == 8);
}

TEST_CASE("nothing of one request is left in the next") {
  UpstreamRequest with = toWrite("POST", "/", "body");
  with.fields.push_back({"x-key", "S"});
  const std::string first = writeRequest(with);
  CHECK(writeRequest(toWrite("GET", "/")).find("x-key") == std::string::npos);
  CHECK(writeRequest(with) == first);
}

}  // namespace
}  // namespace stitchkit
