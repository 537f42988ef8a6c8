// What an upstream may answer: whole, framed in one way, within limits; and the same however it comes.
#include "gateway/response_fence.h"

#include <catch2/catch.hpp>

#include <random>
#include <string>

#include "rpc/base/limits.h"
#include "tests/gateway/slicing.h"

namespace stitchkit {
namespace {

using testing::Pieces;
using testing::slicings;

constexpr std::uint64_t kResponseLimit = 1000;

struct ResponseOutcome {
  std::string word;  ///< "complete", "wants more", or "internal", "denied", "limit"
  UpstreamResponse response;

  [[nodiscard]] std::string text() const {
    std::string all = word;
    if (word == "complete") {
      all += " " + std::to_string(response.status) + (response.keepAlive ? " keep" : " close") + " [" + response.body +
             "]";
      for (const HeaderField& field : response.fields) {
        all += " " + field.name + "=" + field.value;
      }
    }
    return all;
  }
};

std::string wordOf(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kInternal:
      return "internal";
    case ErrorKind::kNetworkDenied:
      return "denied";
    case ErrorKind::kLimit:
      return "limit";
    default:
      return "?";
  }
}

enum class After : std::uint8_t { kStays, kEnds };

ResponseOutcome readResponsePieces(const Pieces& pieces, After after, bool toHead, std::uint64_t limit) {
  ResponseFence fence(toHead, false, limit);
  CHECK_FALSE(fence.begun());
  for (const std::string_view piece : pieces) {
    if (const Result<void> fed = fence.feed(piece); !fed) {
      CHECK_FALSE(fence.complete());
      return {wordOf(fed.error()), {}};
    }
    if (fence.begun() == piece.empty()) {
      FAIL_CHECK("begun() is about bytes");
    }
  }
  if (after == After::kEnds) {
    if (const Result<void> ended = fence.end(); !ended) {
      CHECK_FALSE(fence.complete());
      return {wordOf(ended.error()), {}};
    }
  }
  if (!fence.complete()) {
    return {"wants more", {}};
  }
  return {"complete", fence.take()};
}

ResponseOutcome readResponse(const std::string& bytes, After after = After::kStays, bool toHead = false,
                             std::uint64_t limit = kResponseLimit) {
  const auto ways = slicings(bytes);
  ResponseOutcome first = readResponsePieces(ways.front(), after, toHead, limit);
  for (const Pieces& way : ways) {
    const std::string text = readResponsePieces(way, after, toHead, limit).text();
    if (text != first.text()) {
      FAIL_CHECK(way.size() << " pieces give " << text.substr(0, 200) << ", all at once " << first.text().substr(0, 200)
                            << " for " << Catch::StringMaker<std::string>::convert(bytes.substr(0, 200)));
    }
  }
  return first;
}

std::string ok(const std::string& lines, const std::string& body) {
  return "HTTP/1.1 200 OK\r\n" + lines + "\r\n" + body;
}

std::string okChunked(const std::string& body) {
  return ok("Transfer-Encoding: chunked\r\n", body);
}

TEST_CASE("responses in each framing are read whole") {
  const ResponseOutcome lengthy = readResponse(ok("Content-Length: 5\r\nX-A:  b \r\nx-a: c\r\n", "hello"));
  CHECK(lengthy.text() == "complete 200 keep [hello] content-length=5 x-a=b x-a=c");
  CHECK(readResponse(okChunked("3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nX-T: u\r\n\r\n")).text() ==
        "complete 200 keep [hello] transfer-encoding=chunked");
  CHECK(readResponse(ok("", "hello"), After::kEnds).text() == "complete 200 close [hello]");
  CHECK(readResponse(ok("", "")).word == "wants more");
  CHECK(readResponse(ok("", ""), After::kEnds).text() == "complete 200 close []");
  CHECK(readResponse(ok("Content-Length: 0\r\n", "")).text() == "complete 200 keep [] content-length=0");
  CHECK(readResponse("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok").text() ==
        "complete 200 close [ok] content-length=2");
  CHECK(readResponse("HTTP/1.0 200 OK\r\n\r\nok", After::kEnds).text() == "complete 200 close [ok]");
  CHECK(readResponse(ok("Content-Length: 2\r\nConnection: close\r\n", "ok")).text() ==
        "complete 200 close [ok] content-length=2 connection=close");
  CHECK(readResponse("HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n").word == "complete");
  CHECK(readResponse("HTTP/1.1 599 Far out\r\nContent-Length: 0\r\n\r\n").response.status == 599);
}

TEST_CASE("a response that is cut short is never complete") {
  for (const std::string& whole :
       {ok("Content-Length: 5\r\nX: y\r\n", "hello"), okChunked("3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"),
        okChunked("5\r\nhello\r\n0\r\nX: y\r\n\r\n"),
        "HTTP/1.1 102 Wait\r\n\r\n" + ok("Content-Length: 5\r\n", "hello")}) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      INFO(whole.substr(0, size));
      CHECK(readResponse(whole.substr(0, size), After::kStays).word == "wants more");
      CHECK(readResponse(whole.substr(0, size), After::kEnds).word == "internal");
    }
    CHECK(readResponse(whole, After::kStays).word == "complete");
    CHECK(readResponse(whole, After::kEnds).word == "complete");
  }
  // The end is what frames this one; its header has to be whole all the same.
  const std::string closing = ok("X: y\r\n", "");
  for (std::size_t size = 0; size < closing.size(); ++size) {
    CHECK(readResponse(closing.substr(0, size), After::kEnds).word == "internal");
  }
}

TEST_CASE("a response that is framed in two ways is refused") {
  for (const char* lines :
       {"Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, gzip\r\n", "Transfer-Encoding: xchunked\r\n", "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: gzip\r\n", "Transfer-Encoding:\r\n", "Content-Length: 5, 5\r\n", "Content-Length: +5\r\n",
        "Content-Length: -5\r\n", "Content-Length: 0x5\r\n", "Content-Length:\r\n", "Content-Length: abc\r\n",
        "Content-Length: 18446744073709551621\r\n"}) {
    INFO(lines);
    CHECK(readResponse(ok(lines, "5\r\nhello\r\n0\r\n\r\n"), After::kEnds).word == "internal");
    CHECK(readResponse(ok(lines, "5\r\nhello\r\n0\r\n\r\n"), After::kEnds, true).word == "internal");
  }
}

TEST_CASE("redirects, 304 and a change of protocol are denied") {
  for (const char* status : {"300", "301", "302", "303", "304", "305", "307", "308", "399", "101"}) {
    INFO(status);
    CHECK(readResponse("HTTP/1.1 " + std::string(status) + " X\r\nLocation: /\r\nContent-Length: 0\r\n\r\n").word ==
          "denied");
  }
  for (const char* status : {"600", "700", "999"}) {
    CHECK(readResponse("HTTP/1.1 " + std::string(status) + " X\r\nContent-Length: 0\r\n\r\n").word == "internal");
  }
}

TEST_CASE("some informational responses are passed over") {
  const std::string last = ok("Content-Length: 2\r\n", "ok");
  const std::string one = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
  std::string run;
  for (int i = 0; i < 8; ++i) {
    run += one;
    CHECK(readResponse(run + last).text() == "complete 200 keep [ok] content-length=2");
    CHECK(readResponse(run).word == "wants more");
    CHECK(readResponse(run, After::kEnds).word == "internal");
  }
  CHECK(readResponse(run + one + last).word == "denied");
  CHECK(readResponse("HTTP/1.1 100 Continue\r\n\r\n" + last).word == "complete");
}

TEST_CASE("a compressed response is refused, since nobody asked for it") {
  for (const char* coding : {"gzip", "br", "deflate", "identity, gzip", "x"}) {
    CHECK(readResponse(ok("Content-Length: 2\r\nContent-Encoding: " + std::string(coding) + "\r\n", "ok")).word ==
          "internal");
  }
  CHECK(readResponse(ok("Content-Length: 2\r\nContent-Encoding: Identity\r\n", "ok")).word == "complete");
}

TEST_CASE("a response has exactly the room that its rule gives, in each framing") {
  const std::string full(kResponseLimit, 'b');
  CHECK(readResponse(ok("Content-Length: 1000\r\n", full)).response.body == full);
  CHECK(readResponse(ok("Content-Length: 1001\r\n", "")).word == "limit");
  CHECK(readResponse(okChunked("3e8\r\n" + full + "\r\n0\r\n\r\n")).response.body == full);
  CHECK(readResponse(okChunked("3e9\r\n")).word == "limit");
  CHECK(readResponse(okChunked("3e8\r\n" + full + "\r\n1\r\nb")).word == "limit");
  CHECK(readResponse(ok("", full), After::kEnds).response.body == full);
  CHECK(readResponse(ok("", full + "b"), After::kEnds).word == "limit");
  CHECK(readResponse(ok("", full + "b"), After::kStays).word == "limit");
  CHECK(readResponse(ok("Content-Length: 0\r\n", ""), After::kStays, false, 0).word == "complete");
  CHECK(readResponse(ok("Content-Length: 1\r\n", "b"), After::kStays, false, 0).word == "limit");
  CHECK(readResponse(okChunked("0\r\n\r\n"), After::kStays, false, 0).word == "complete");
  CHECK(readResponse(ok("", ""), After::kEnds, false, 0).word == "complete");
  CHECK(readResponse(ok("", "b"), After::kEnds, false, 0).word == "limit");
}

TEST_CASE("no body follows HEAD and 204, whatever the header says") {
  CHECK(readResponse(ok("Content-Length: 5\r\n", ""), After::kStays, true).text() ==
        "complete 200 keep [] content-length=5");
  CHECK(readResponse(ok("Content-Length: 999999\r\n", ""), After::kStays, true).word == "complete");
  CHECK(readResponse(okChunked(""), After::kStays, true).text() == "complete 200 keep [] transfer-encoding=chunked");
  CHECK(readResponse(ok("", ""), After::kStays, true).word == "complete");
  CHECK(readResponse("HTTP/1.1 204 No Content\r\n\r\n").text() == "complete 204 keep []");
  CHECK(readResponse("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n").word == "complete");
  // What does follow belongs to no request.
  CHECK(readResponse(ok("Content-Length: 5\r\n", "hello"), After::kStays, true).text() ==
        "complete 200 close [] content-length=5");
  CHECK_FALSE(readResponse("HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok").response.keepAlive);
}

TEST_CASE("bytes behind a response end the use of its connection") {
  CHECK(readResponse(ok("Content-Length: 5\r\n", "hello!")).text() == "complete 200 close [hello] content-length=5");
  CHECK(readResponse(okChunked("0\r\n\r\nX")).text() == "complete 200 close [] transfer-encoding=chunked");
  CHECK(readResponse(ok("Content-Length: 0\r\n", "HTTP/1.1 200 OK\r\n\r\n")).text() ==
        "complete 200 close [] content-length=0");
}

TEST_CASE("an upstream's header has a ceiling") {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Long: ";
  const std::size_t room = limits::kUpstreamHeaderBytes - head.size() - 4;
  CHECK(readResponse(head + std::string(room, 'b') + "\r\n\r\n").word == "complete");
  CHECK(readResponse(head + std::string(room + 1, 'b') + "\r\n\r\n").word == "limit");
  CHECK(readResponse(std::string(limits::kUpstreamHeaderBytes, 'A')).word == "limit");
  std::string many;
  while (many.size() < 2 * limits::kUpstreamHeaderBytes) {
    many += "a: b\r\n";
  }
  CHECK(readResponse(ok(many, "")).word == "limit");
  // A ceiling of its own for each.
  CHECK(readResponse("HTTP/1.1 103 X\r\nX-Long: " + std::string(60000, 'a') + "\r\n\r\n" + head +
                     std::string(room, 'b') + "\r\n\r\n")
            .word == "complete");
}

TEST_CASE("lines of an upstream's chunks have a ceiling, whatever the pieces they come in") {
  const std::size_t most = limits::kGatewayChunkLineBytes;
  CHECK(readResponse(okChunked("5;" + std::string(most - 10, 'a') + "\r\nhello\r\n0\r\n\r\n")).word == "complete");
  CHECK(readResponse(okChunked("5;" + std::string(3 * most, 'a') + "\r\nhello\r\n0\r\n\r\n")).word == "internal");
  CHECK(readResponse(okChunked("5\r\nhello\r\n0\r\nX: " + std::string(3 * most, 'a') + "\r\n\r\n")).word == "internal");
  CHECK(readResponse(okChunked("1\r\nb\r\n0\r\n")).word == "wants more");
}

TEST_CASE("what is not HTTP/1 is refused") {
  for (const char* bytes : {"garbage\r\n\r\n",
                            "\r\n\r\n",
                            "HTTP/2.0 200 OK\r\n\r\n",
                            "HTTP/1.2 200 OK\r\n\r\n",
                            "HTTP/1.1 20 OK\r\n\r\n",
                            "HTTP/1.1 2000 OK\r\n\r\n",
                            "HTTP/1.1 abc OK\r\n\r\n",
                            "HTTP/1.1 -20 OK\r\n\r\n",
                            "HTTP/1.1  200 OK\r\n\r\n",
                            "http/1.1 200 OK\r\n\r\n",
                            "GET / HTTP/1.1\r\n\r\n",
                            "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n",
                            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
                            "HTTP/1.1 200 OK\r\n: x\r\n\r\n",
                            "HTTP/1.1 200 OK\r\na b: c\r\n\r\n",
                            "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n",
                            "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n",
                            "HTTP/1.1 000 X\r\n\r\n",
                            "HTTP/1.1 099 X\r\n\r\n",
                            "SSH-2.0-OpenSSH\r\n\r\n"}) {
    INFO(bytes);
    const std::string word = readResponse(bytes, After::kEnds).word;
    CHECK((word == "internal" || word == "denied"));
  }
  CHECK(readResponse(ok("X: a" + std::string(1, '\0') + "b\r\n", ""), After::kEnds).word == "internal");
  for (const char* body :
       {"FFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n", "-1\r\nhello\r\n0\r\n\r\n", "g\r\n", "5\nhello\r\n0\r\n\r\n",
        "5\r\nhelloX\r\n0\r\n\r\n", "5;a\nb\r\nhello\r\n0\r\n\r\n", "\r\n\r\n"}) {
    CHECK(readResponse(okChunked(body), After::kEnds).word == "internal");
  }
  CHECK(readResponse("", After::kEnds).word == "internal");
}

TEST_CASE("whatever an upstream's bytes, the pieces they come in do not matter") {
  const std::vector<std::string> parts{"HTTP/1.1 200 OK",
                                       "HTTP/1.0 200 OK",
                                       "HTTP/1.1 204 X",
                                       "HTTP/1.1 100 X\r\n\r\n",
                                       "HTTP/1.1 302 X",
                                       "\r\n",
                                       "\r\n",
                                       "\r\n\r\n",
                                       "\n",
                                       "\r",
                                       "Content-Length: 5",
                                       "content-length: 0",
                                       "Transfer-Encoding: chunked",
                                       "Connection: close",
                                       "X: y",
                                       ":",
                                       "hello",
                                       "5\r\nhello\r\n",
                                       "0\r\n\r\n",
                                       "0\r\n",
                                       "ff",
                                       std::string(1, '\0'),
                                       std::string(3000, 'a')};
  const std::vector<std::string> starts{"", "HTTP/1.1 200 OK\r\n", okChunked(""), ok("Content-Length: 5\r\n", ""),
                                        ok("", "")};
  std::mt19937 random(28);
  const auto below = [&random](std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most - 1)(random);
  };
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = starts[below(starts.size())];
    for (std::size_t left = below(10); left > 0; --left) {
      bytes += parts[below(parts.size())];
    }
    if (!bytes.empty() && below(3) == 0) {
      bytes[below(bytes.size())] = static_cast<char>(below(256));
    }
    readResponse(bytes, i % 2 == 0 ? After::kStays : After::kEnds, i % 7 == 0);
  }
}

}  // namespace
}  // namespace stitchkit
