// The judge is judged: matchers, long values, framing, and the strict reader.
#include <catch2/catch.hpp>

#include "conformance/bytes.h"
#include "conformance/expand.h"
#include "conformance/framing.h"
#include "conformance/http_message.h"
#include "conformance/matcher.h"

namespace conformance {
namespace {

bool matches(const char* expected, const char* actual) {
  return !mismatch(Json::parse(expected), Json::parse(actual));
}

TEST_CASE("literals match with their type") {
  CHECK(matches("1", "1"));
  CHECK_FALSE(matches("1", "1.0"));
  CHECK_FALSE(matches("1", "\"1\""));
  CHECK_FALSE(matches("null", "false"));
  CHECK(matches("18446744073709551615", "18446744073709551615"));
  CHECK_FALSE(matches("-1", "18446744073709551615"));
  CHECK(matches("[1,[2]]", "[1,[2]]"));
  CHECK_FALSE(matches("[1]", "[1,2]"));
  CHECK(matches(R"({"a":1})", R"({"a":1})"));
  CHECK_FALSE(matches(R"({"a":1})", R"({"a":1,"b":2})"));
  CHECK_FALSE(matches(R"({"a":1,"b":2})", R"({"a":1})"));
}

TEST_CASE("matchers accept what they say") {
  CHECK(matches(R"({"$any":true})", "null"));
  CHECK(matches(R"({"$type":"integer"})", "5"));
  CHECK(matches(R"({"$partial":{"a":1}})", R"({"a":1,"b":2})"));
  CHECK(matches(R"({"a":{"$absent":true}})", R"({})"));
  CHECK(matches(R"({"$unordered":[1,2]})", "[2,1]"));
  CHECK(matches(R"({"$contains":{"$partial":{"a":1}}})", R"([{"a":2},{"a":1,"b":0}])"));
  CHECK(matches(R"({"$contains":"b"})", "\"abc\""));
  CHECK(matches(R"({"$each":{"$type":"string"}})", R"(["a","b"])"));
  CHECK(matches(R"({"$pattern":"^a.c$"})", R"("a\nc")"));
  CHECK(matches(R"({"$text":"hi"})", "\"aGk=\""));
  CHECK(matches(R"({"$size":2})", "\"ab\""));
  CHECK(matches(R"({"$digest":"fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603"})", "\"ab\""));
  CHECK(matches(R"({"$number":{"min":1,"max":2}})", "2"));
  CHECK(matches(R"({"$oneOf":[1,2]})", "2"));
  CHECK(matches(R"({"$all":[{"$type":"string"},"a"]})", "\"a\""));
  CHECK(matches(R"({"$not":1})", "2"));
  CHECK(matches(R"({"$sha256":""})", "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\""));
}

TEST_CASE("matchers refuse everything else") {
  CHECK_FALSE(matches(R"({"$type":"integer"})", "5.5"));
  CHECK_FALSE(matches(R"({"$partial":{"a":1}})", R"({"b":2})"));
  CHECK_FALSE(matches(R"({"a":{"$absent":true}})", R"({"a":null})"));
  CHECK_FALSE(matches(R"({"$unordered":[1,1]})", "[1,2]"));
  CHECK_FALSE(matches(R"({"$contains":3})", "[1,2]"));
  CHECK_FALSE(matches(R"({"$each":{"$type":"string"}})", R"(["a",1])"));
  CHECK_FALSE(matches(R"({"$pattern":"^a$"})", R"("ab")"));
  CHECK_FALSE(matches(R"({"$text":"hi"})", "\"aGk\""));
  CHECK_FALSE(matches(R"({"$number":{"min":1}})", "0"));
  CHECK_FALSE(matches(R"({"$digest":"ab"})", "\"ab\""));
  CHECK_FALSE(matches(R"({"$oneOf":[1,2]})", "3"));
  CHECK_FALSE(matches(R"({"$not":1})", "1"));
  CHECK_FALSE(matches(R"({"$unknown":1})", "1"));
  CHECK_FALSE(matches(R"({"$pattern":"("})", R"("(")"));
  CHECK_FALSE(matches(R"({"$type":5})", "5"));
}

TEST_CASE("values are put in with their type") {
  const Variables variables = {{"n", 5}, {"s", "x"}, {"o", {{"a", 1}}}};
  Json value = Json::parse(R"({"a":"${n}","b":"<${n}${s}>","${s}":"${o}","r":{"$repeat":["ab",3]},
                               "c":{"$concat":["a",{"$repeat":["b",2]}]},"e":{"$base64":"hi"},"f":{"$fill":[{"a":1},2]}})");
  CHECK_FALSE(expand(value, variables));
  CHECK(value ==
        Json::parse(R"({"a":5,"b":"<5x>","x":{"a":1},"r":"ababab","c":"abb","e":"aGk=","f":[{"a":1},{"a":1}]})"));
  Json unknown = "${nothing}";
  CHECK(expand(unknown, variables));
  Json wrong = {{"$repeat", {"a", -1}}};
  CHECK(expand(wrong, variables));
}

TEST_CASE("the reader is strict") {
  std::string problem;
  CHECK(parseStrict(R"({"a":{"a":1},"b":[{"a":1}]})", problem));
  CHECK_FALSE(parseStrict(R"({"a":1,"a":1})", problem));
  problem.clear();
  CHECK_FALSE(parseStrict(std::string(100000, '[') + std::string(100000, ']'), problem));
  problem.clear();
  CHECK_FALSE(parseStrict("1 2", problem));
  problem.clear();
  CHECK_FALSE(parseStrict("\"\xff\"", problem));
}

TEST_CASE("base64 is canonical") {
  CHECK(decodeBase64("") == std::string());
  CHECK(decodeBase64("AA==") == std::string(1, '\0'));
  for (const char* wrong : {"A", "AB==", "AA=", "AA==\n", "A_==", "===="}) {
    CHECK_FALSE(decodeBase64(wrong));
  }
}

TEST_CASE("frames are whole however the bytes come") {
  for (const Framing framing : {Framing::kLines, Framing::kHeaders}) {
    FrameReader reader(framing);
    std::vector<std::string> came;
    std::string problem;
    for (const char byte : encodeFrame(framing, "{\"a\":1}") + encodeFrame(framing, "[]")) {
      reader.feed(std::string(1, byte));
      while (const auto message = reader.next(problem)) {
        came.push_back(*message);
      }
    }
    CHECK(problem.empty());
    CHECK(came == std::vector<std::string>{"{\"a\":1}", "[]"});
    CHECK(reader.rest().empty());
  }
  FrameReader lines(Framing::kLines);
  lines.feed("\n");
  std::string problem;
  CHECK_FALSE(lines.next(problem));
  CHECK_FALSE(problem.empty());
}

using State = HttpParsed::State;

TEST_CASE("messages of HTTP are read however they come") {
  const std::string request =
      "POST /a?b HTTP/1.1\r\nX-A:  b \r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
  for (std::size_t size = 0; size < request.size(); ++size) {
    CHECK(parseRequest(request.substr(0, size)).state == State::kMore);
  }
  const HttpParsed whole = parseRequest(request + "GET");
  REQUIRE(whole.state == State::kWhole);
  CHECK(whole.consumed == request.size());
  CHECK(whole.message.method == "POST");
  CHECK(whole.message.target == "/a?b");
  CHECK(whole.message.field("x-a") == "b");
  CHECK(whole.message.body == "hi");

  const std::string reply = "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok";
  CHECK(parseReply(reply, false, false).message.body == "ok");
  CHECK(parseReply(reply.substr(0, reply.size() - 1), true, false).state == State::kMore);
  CHECK(parseReply("HTTP/1.1 204 x\r\n\r\nnext", false, false).consumed == 18);
  CHECK(parseReply(reply, false, true).consumed == reply.size() - 2);
  CHECK(parseReply("HTTP/1.1 200 x\r\n\r\nall", false, false).state == State::kMore);
  CHECK(parseReply("HTTP/1.1 200 x\r\n\r\nall", true, false).message.body == "all");
}

TEST_CASE("what a lenient reader of HTTP would take is wrong") {
  const std::string line = "POST / HTTP/1.1\r\n";
  for (const char* rest : {
           "X-A : b\r\n\r\n",
           " X-A: b\r\n\r\n",
           "X-A: b\r\n c\r\n\r\n",
           "X-A: b\nX-B: c\r\n\r\n",
           "X-A\r\n\r\n",
           ": b\r\n\r\n",
           "Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
           "Content-Length: +1\r\n\r\na",
           "Content-Length: 1, 1\r\n\r\na",
           "Content-Length: \r\n\r\n",
           "Content-Length: 99999999999999999999\r\n\r\n",
           "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
           "Transfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0\r\n\r\n",
           "Transfer-Encoding: chunked\r\n\r\n-1\r\n",
           "Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
           "Transfer-Encoding: chunked\r\n\r\n0\r\nX-A: b\r\n\r\n",
           "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
       }) {
    CAPTURE(rest);
    CHECK(parseRequest(line + rest).state == State::kWrong);
  }
  for (const char* first :
       {"GET  / HTTP/1.1", "GET / HTTP/1.0", "GET /a b HTTP/1.1", "GET HTTP/1.1", "G@T / HTTP/1.1", ""}) {
    CAPTURE(first);
    CHECK(parseRequest(std::string(first) + "\r\n\r\n").state == State::kWrong);
  }
  for (const char* first : {"HTTP/1.0 200 x", "HTTP/1.1 20 x", "HTTP/1.1 200", "HTTP/1.1 +20 x", "HTTP/1.1 099 x"}) {
    CAPTURE(first);
    CHECK(parseReply(std::string(first) + "\r\n\r\n", true, false).state == State::kWrong);
  }
  CHECK(parseRequest("\x16\x03\x01").state == State::kWrong);
  CHECK(parseRequest("G" + std::string(70000, 'x')).state == State::kWrong);
}

}  // namespace
}  // namespace conformance
