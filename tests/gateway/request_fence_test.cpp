// Every way in which a guest's bytes can be framed twice, or be too many: refused, and the same however they come.
#include "gateway/request_fence.h"

#include <catch2/catch.hpp>

#include <random>
#include <string>
#include <vector>

#include "rpc/base/limits.h"
#include "tests/gateway/slicing.h"

namespace stitchkit {
namespace {

using testing::Pieces;
using testing::slicings;

constexpr std::uint64_t kBodyLimit = 1000;
const std::string kHidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";

/// What came of an input: "refused 400", "wants more", or "complete", with the request and what was not taken.
struct ReadOutcome {
  std::string word;
  GuestRequest request;
  std::string rest;

  [[nodiscard]] std::string text() const {
    std::string all = word;
    if (word == "complete") {
      all += " " + request.method + " " + request.target + " [" + request.body + "] rest [" + rest + "]";
      all += request.keepAlive ? " keep" : " close";
      all += request.expectsContinue ? " expects" : "";
      for (const HeaderField& field : request.fields) {
        all += " " + field.name + "=" + field.value;
      }
    }
    return all;
  }
};

ReadOutcome readPieces(const Pieces& pieces, std::uint64_t limit) {
  RequestFence fence;
  ReadOutcome outcome;
  for (std::string_view piece : pieces) {
    while (!piece.empty()) {
      const std::size_t taken = fence.feed(piece);
      if (taken > piece.size()) {
        FAIL("more taken than given");
      }
      piece.remove_prefix(taken);
      if (fence.state() == RequestFence::State::kHeaderDone) {
        fence.admitBody(limit);
      }
      if (fence.bodyBytes() > limit) {
        FAIL("a body over its limit");
      }
      if (fence.state() == RequestFence::State::kComplete || fence.state() == RequestFence::State::kRefused) {
        outcome.rest += piece;
        break;
      }
    }
  }
  switch (fence.state()) {
    case RequestFence::State::kComplete:
      outcome.word = "complete";
      break;
    case RequestFence::State::kRefused:
      outcome.word = "refused " + std::to_string(fence.status());
      CHECK(fence.feed(kHidden) == 0);
      CHECK(fence.state() == RequestFence::State::kRefused);
      break;
    default:
      outcome.word = "wants more";
  }
  outcome.request = std::move(fence.request());
  return outcome;
}

/// The outcome, which is the same for every slicing.
ReadOutcome readRequest(const std::string& bytes, std::uint64_t limit = kBodyLimit) {
  const auto ways = slicings(bytes);
  ReadOutcome first = readPieces(ways.front(), limit);
  for (const Pieces& way : ways) {
    const std::string text = readPieces(way, limit).text();
    if (text != first.text()) {
      FAIL_CHECK(way.size() << " pieces give " << text.substr(0, 200) << ", all at once " << first.text().substr(0, 200)
                            << " for " << Catch::StringMaker<std::string>::convert(bytes.substr(0, 200)));
    }
  }
  return first;
}

std::string post(const std::string& lines, const std::string& body) {
  return "POST /x HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n" + body;
}

std::string chunkedPost(const std::string& body) {
  return post("Transfer-Encoding: chunked\r\n", body);
}

void expectRefused(const std::string& bytes, unsigned status = 400) {
  INFO(bytes.substr(0, 300));
  CHECK(readRequest(bytes + kHidden).word == "refused " + std::to_string(status));
}

GuestRequest expectComplete(const std::string& bytes, const std::string& rest = kHidden) {
  INFO(bytes.substr(0, 300));
  ReadOutcome outcome = readRequest(bytes + rest);
  CHECK(outcome.word == "complete");
  CHECK(outcome.rest == rest);
  return std::move(outcome.request);
}

TEST_CASE("a request is read whole, and no byte behind it") {
  const GuestRequest get =
      expectComplete("GET /a?b=c HTTP/1.1\r\nHost: a.example:80\r\nX-Two:  one \r\nx-two: 2\r\n\r\n");
  CHECK(get.method == "GET");
  CHECK(get.target == "/a?b=c");
  CHECK(get.fields == std::vector<HeaderField>{{"host", "a.example:80"}, {"x-two", "one"}, {"x-two", "2"}});
  CHECK(get.count("x-two") == 2);
  CHECK(get.first("x-two") == "one");
  CHECK(get.first("absent").empty());
  CHECK_FALSE(get.hasBody());
  CHECK(expectComplete(post("Content-Length: 5\r\n", "hello")).body == "hello");
  CHECK(expectComplete(chunkedPost("3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n")).body == "hello");
  CHECK(expectComplete(post("", "")).body.empty());
  CHECK(expectComplete("DELETE /x HTTP/1.1\r\nHost: a\r\n\r\n").method == "DELETE");
  // Judged by the forwarding, not by the framing.
  CHECK(expectComplete("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc").body == "abc");
  CHECK(expectComplete("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n").method == "CONNECT");
  CHECK(expectComplete("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").count("host") == 2);
  CHECK(expectComplete("GET / HTTP/1.1\r\n\r\n").count("host") == 0);
}

TEST_CASE("a header that has not ended wants more") {
  CHECK(readRequest("").word == "wants more");
  CHECK(readRequest("GET / HTT").word == "wants more");
  CHECK(readRequest("GET / HTTP/1.1\r\nHost: a\r\n").word == "wants more");
  CHECK(readRequest("GET / HTTP/1.1\r\nHost: a\r\n\r").word == "wants more");
  CHECK(readRequest(post("Content-Length: 5\r\n", "hell")).word == "wants more");
  CHECK(readRequest(chunkedPost("5\r\nhello\r\n0\r\n")).word == "wants more");
  CHECK(readRequest(chunkedPost("5\r\nhello\r\n0\r\nX: y\r\n")).word == "wants more");
}

TEST_CASE("one empty line may stand before a request") {
  expectComplete("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
  expectRefused("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
  expectRefused("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
  expectRefused("\r\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
  expectRefused("\r\n GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  RequestFence fence;
  CHECK(fence.untouched());
  CHECK(fence.feed("\r\n") == 2);
  CHECK(fence.untouched());
  CHECK(fence.feed("G") == 1);
  CHECK_FALSE(fence.untouched());
}

TEST_CASE("lengths that could be read in two ways are refused") {
  for (const char* lines :
       {"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\ncontent-length: 5\r\n"}) {
    expectRefused(post(lines, "hello"));
    expectRefused(post(lines, "5\r\nhello\r\n0\r\n\r\n"));
  }
  for (const char* length : {"5, 5",
                             "5,5",
                             "5,",
                             ",5",
                             "+5",
                             "-5",
                             "-0",
                             "0x5",
                             "5h",
                             "h5",
                             "5 5",
                             "5.0",
                             "5e0",
                             "",
                             " ",
                             "\"5\"",
                             "5;",
                             "18446744073709551621",
                             "18446744073709551616",
                             "9223372036854775813",
                             "1000000000000000005",
                             "00000000000000000000005",
                             "abc",
                             "\xEF\xBC\x95",
                             "5\xC2\xA0"}) {
    expectRefused(post("Content-Length: " + std::string(length) + "\r\n", "hello"));
  }
}

TEST_CASE("a length may have white space around it, and zeros before") {
  for (const char* line : {"Content-Length:5", "Content-Length:   5", "Content-Length:\t5 \t", "content-LENGTH: 5",
                           "Content-Length: 000005"}) {
    CHECK(expectComplete(post(std::string(line) + "\r\n", "hello")).body == "hello");
  }
}

TEST_CASE("chunked is the only coding, once") {
  for (const char* coding :
       {"chunked, gzip", "gzip, chunked", "xchunked", "chunkedx", "identity", "chunked, chunked", "chunked,",
        ",chunked", "", "gzip", "chunked;q=1", "\"chunked\"", "chunked identity", "identity, chunked",
        "\xC2\xA0"
        "chunked"}) {
    expectRefused(post("Transfer-Encoding: " + std::string(coding) + "\r\n", "5\r\nhello\r\n0\r\n\r\n"));
  }
  for (const char* lines :
       {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding:\x0b"
        "chunked\r\n",
        "Transfer-Encoding : chunked\r\n", "Transfer-Encoding\t: chunked\r\n", " Transfer-Encoding: chunked\r\n",
        "X: y\r\n Transfer-Encoding: chunked\r\n", "Transfer-Encoding:\r\n chunked\r\n", "Transfer-Encoding: chunked\n",
        "Transfer-Encoding: chunked\r"}) {
    expectRefused(post(lines, "5\r\nhello\r\n0\r\n\r\n"));
  }
  CHECK(expectComplete(post("transfer-encoding:  Chunked \r\n", "5\r\nhello\r\n0\r\n\r\n")).body == "hello");
  expectRefused("POST /x HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
}

TEST_CASE("lines end with CR LF, and hold no control characters") {
  const std::string request = "GET / HTTP/1.1\r\nHost: a\r\nX-One: b\r\n\r\n";
  for (std::size_t at = request.find('\r'); at != std::string::npos; at = request.find('\r', at + 1)) {
    std::string bare = request;
    bare.erase(at, 1);  // LF
    expectRefused(bare);
    bare = request;
    bare.erase(at + 1, 1);  // CR
    expectRefused(bare);
  }
  for (std::size_t at = 0; at + 1 < request.size(); ++at) {
    for (const char c : {'\0', '\x01', '\x0b', '\x1b', '\x7f', '\r', '\n'}) {
      std::string foreign = request;
      foreign.insert(at, 1, c);
      INFO("byte " << int{c} << " at " << at);
      CHECK(readRequest(foreign + kHidden).word == "refused 400");
    }
  }
  expectRefused("GET / HTTP/1.1\r\nHost: a\tb\r\n\r\n");
  CHECK(expectComplete("GET / HTTP/1.1\r\nHost: a\r\nX-One: b\tc\r\n\r\n").first("x-one") == "b\tc");
}

TEST_CASE("folded lines are refused") {
  for (const char* fold : {" ", "\t", "  \t"}) {
    expectRefused("GET / HTTP/1.1\r\nHost: a\r\nX-One: b\r\n" + std::string(fold) + "c\r\n\r\n");
    expectRefused("GET / HTTP/1.1\r\n" + std::string(fold) + "Host: a\r\n\r\n");
    expectRefused("GET / HTTP/1.1\r\nHost: a\r\n" + std::string(fold) + "\r\n\r\n");
    expectRefused("GET / HTTP/1.1\r\nHost:\r\n" + std::string(fold) + "a\r\n\r\n");
  }
}

TEST_CASE("names of fields are tokens") {
  for (const char* line : {": x", "no colon", "h\xC3\xA4: x", "a b: x", "a(b): x", "\"a\": x", "a/b: x", "[a]: x",
                           "X-One : b", "X-One\t: b", "=", "@: x"}) {
    expectRefused("GET / HTTP/1.1\r\nHost: a\r\n" + std::string(line) + "\r\n\r\n");
  }
  CHECK(expectComplete("GET / HTTP/1.1\r\nHost: a\r\nx_.!#$%&'*+-^`|~9: v\r\n\r\n").first("x_.!#$%&'*+-^`|~9") == "v");
  CHECK(expectComplete("GET / HTTP/1.1\r\nHost: a\r\nX-One:\r\n\r\n").count("x-one") == 1);
  CHECK(expectComplete("GET / HTTP/1.1\r\nHost: a\r\nX-One: \xE9\xFF\r\n\r\n").first("x-one") == "\xE9\xFF");
}

TEST_CASE("request lines other than HTTP/1.0 and HTTP/1.1 in one spelling are refused") {
  for (const char* line : {"GET / HTTP/2.0",
                           "GET / HTTP/0.9",
                           "GET / HTTP/1.2",
                           "GET / HTTP/3",
                           "GET / HTTP/1.1 ",
                           "GET / http/1.1",
                           "GET /",
                           "GET",
                           "",
                           "GET / HTTP/11.1",
                           "GET / HTTP/1.10",
                           "GET / HTTP/01.1",
                           "GET / HTTP/+1.1",
                           "GET / HTTP/1,1",
                           "GET / HTTPS/1.1",
                           "PRI * HTTP/2.0",
                           "get / HTTP/1.1",
                           "Get / HTTP/1.1",
                           "GET  / HTTP/1.1",
                           "GET /  HTTP/1.1",
                           "GET\t/ HTTP/1.1",
                           " GET / HTTP/1.1",
                           "GET / /b HTTP/1.1",
                           "GET  HTTP/1.1",
                           "G3T / HTTP/1.1",
                           "GE\xC3\xA4 / HTTP/1.1",
                           "GET_X / HTTP/1.1",
                           "\x16\x03\x01",
                           "SSH-2.0-x"}) {
    expectRefused(std::string(line) + "\r\nHost: a\r\n\r\n");
  }
  CHECK(expectComplete("M-SEARCH * HTTP/1.1\r\nHost: a\r\n\r\n").method == "M-SEARCH");
  CHECK(expectComplete("GET http://a/x HTTP/1.1\r\nHost: a\r\n\r\n").target == "http://a/x");
}

TEST_CASE("a header has a ceiling of bytes and of fields") {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\nX-Long: ";
  const std::size_t room = limits::kGatewayHeaderBytes - head.size() - 4;
  CHECK(expectComplete(head + std::string(room, 'b') + "\r\n\r\n").first("x-long").size() == room);
  expectRefused(head + std::string(room + 1, 'b') + "\r\n\r\n", 431);
  expectRefused("GET /" + std::string(limits::kGatewayHeaderBytes, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n", 431);
  expectRefused(std::string(limits::kGatewayHeaderBytes, 'A'), 431);
  // The faults of what came before count more than its length.
  expectRefused("GET / HTTP/1.1\n" + std::string(limits::kGatewayHeaderBytes, 'a'), 400);
  // An empty line before it does not count.
  expectComplete("\r\n" + head + std::string(room, 'b') + "\r\n\r\n");
  expectRefused("\r\n" + head + std::string(room + 1, 'b') + "\r\n\r\n", 431);

  std::string fields;
  for (std::size_t i = 0; i < limits::kGatewayHeaderFields; ++i) {
    fields += "x" + std::to_string(i) + ": y\r\n";
  }
  CHECK(expectComplete("GET / HTTP/1.1\r\n" + fields + "\r\n").fields.size() == limits::kGatewayHeaderFields);
  expectRefused("GET / HTTP/1.1\r\n" + fields + "y: z\r\n\r\n", 431);
}

TEST_CASE("a header without an end costs no more than its ceiling") {
  const std::string piece(64U * 1024, 'A');
  RequestFence fence;
  std::size_t taken = 0;
  for (int i = 0; i < 200 * 16; ++i) {
    taken += fence.feed(piece);
  }
  CHECK(taken == limits::kGatewayHeaderBytes);
  CHECK(fence.status() == 431);
}

TEST_CASE("expectations other than 100-continue are refused") {
  CHECK(expectComplete(post("Expect: 100-continue\r\nContent-Length: 1\r\n", "x")).expectsContinue);
  CHECK(expectComplete(post("Expect: 100-CONTINUE\r\nContent-Length: 1\r\n", "x")).expectsContinue);
  for (const char* lines : {"Expect: 200-ok\r\n", "Expect: 100-continue\r\nExpect: 100-continue\r\n",
                            "Expect: 100-continue, x\r\n", "Expect:\r\n", "Expect: 100-continue;x\r\n"}) {
    expectRefused(post(std::string(lines) + "Content-Length: 1\r\n", "x"), 417);
  }
  const std::string old = "POST /x HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx";
  CHECK_FALSE(expectComplete(old).expectsContinue);
}

TEST_CASE("connections are kept as the guest's version and Connection say") {
  const auto keeps = [](const std::string& version, const std::string& lines) {
    return expectComplete("GET / HTTP/" + version + "\r\nHost: a\r\n" + lines + "\r\n").keepAlive;
  };
  CHECK(keeps("1.1", ""));
  CHECK(keeps("1.1", "Connection: keep-alive\r\n"));
  CHECK(keeps("1.1", "Connection: x-key\r\n"));
  CHECK_FALSE(keeps("1.1", "Connection: close\r\n"));
  CHECK_FALSE(keeps("1.1", "Connection: X-Key, Close\r\n"));
  CHECK_FALSE(keeps("1.1", "Connection: x-key\r\nConnection: close\r\n"));
  CHECK_FALSE(keeps("1.0", ""));
  CHECK_FALSE(keeps("1.0", "Connection: close\r\n"));
  CHECK_FALSE(keeps("1.0", "Connection: keep-alive\r\n"));
}

TEST_CASE("sizes of chunks are hexadecimal and bounded") {
  for (const char* size : {"FFFFFFFFFFFFFFFFF", "10000000000000005", "-1", "-2", "+5", "0x5", " 5", "\t5", "", "g",
                           "5g", "5,", "5.", "\xEF\xBC\x95"}) {
    expectRefused(chunkedPost(std::string(size) + "\r\nhello\r\n0\r\n\r\n"));
  }
  for (const char* size : {"FFFFFFFFFFFFFFFF", "7FFFFFFFFFFFFFFF", "FFFFFFFF", "3e9"}) {
    expectRefused(chunkedPost(std::string(size) + "\r\nhello\r\n0\r\n\r\n"), 413);
  }
  CHECK(expectComplete(chunkedPost("A\r\n0123456789\r\na\r\n0123456789\r\n000\r\n\r\n")).body.size() == 20);
  CHECK(expectComplete(chunkedPost("0005\r\nhello\r\n0\r\n\r\n")).body == "hello");
  CHECK(expectComplete(chunkedPost("0\r\n\r\n")).body.empty());
}

TEST_CASE("lines around chunks are as strict as others") {
  for (const char* body :
       {"5\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\rhello\r\n0\r\n\r\n", "5\r\nhelloX\r\n0\r\n\r\n",
        "5\r\nhelloXX0\r\n\r\n", "5\r\nhello0\r\n\r\n", "5;a\nb\r\nhello\r\n0\r\n\r\n", "5;\n\r\nhello\r\n0\r\n\r\n",
        "5;a=\"\n\"\r\nhello\r\n0\r\n\r\n", "5;a\rb\r\nhello\r\n0\r\n\r\n", "5;a=\"\r\n\"\r\nhello\r\n0\r\n\r\n",
        "5;\r\nhello\r\n0\r\n\r\n", "5;a=\"b\r\nhello\r\n0\r\n\r\n\"", "5 x\r\nhello\r\n0\r\n\r\n",
        "\r\n5\r\nhello\r\n0\r\n\r\n"}) {
    expectRefused(chunkedPost(body));
  }
  // A quotation that its line does not end is waited for, and then refused.
  CHECK(readRequest(chunkedPost("5;a=\"b\r\nhello\r\n0\r\n\r\n") + kHidden).word == "wants more");
  CHECK(expectComplete(chunkedPost("5;a=b;c;d=\"e;f\"\r\nhello\r\n0;x=y\r\n\r\n")).body == "hello");
}

TEST_CASE("lines of chunks and trailers have a ceiling, whatever the pieces they come in") {
  const std::size_t most = limits::kGatewayChunkLineBytes;
  CHECK(expectComplete(chunkedPost("5;" + std::string(most - 10, 'a') + "\r\nhello\r\n0\r\n\r\n")).body == "hello");
  expectRefused(chunkedPost("5;" + std::string(most, 'a') + "\r\nhello\r\n0\r\n\r\n"));
  expectRefused(chunkedPost("5;" + std::string(3 * most, 'a') + "\r\nhello\r\n0\r\n\r\n"));
  expectRefused(chunkedPost("5\r\nhello\r\n5;" + std::string(3 * most, 'a') + "\r\nhello\r\n0\r\n\r\n"));
  expectRefused(chunkedPost(std::string(3 * most, '0') + "5\r\nhello\r\n0\r\n\r\n"));
  expectRefused(chunkedPost("0\r\nX: " + std::string(most, 'a') + "\r\n\r\n"));
  expectRefused(chunkedPost("5\r\nhello\r\n0\r\nX: " + std::string(3 * most, 'a') + "\r\n\r\n"));
  CHECK(expectComplete(chunkedPost("5\r\nhello\r\n0\r\nX: " + std::string(most - 20, 'a') + "\r\n\r\n")).body ==
        "hello");
  for (std::size_t size = most - 8; size < most + 8; ++size) {
    readRequest(chunkedPost("5;" + std::string(size, 'a') + "\r\nhello\r\n5;" + std::string(size, 'b') +
                            "\r\nhello\r\n0\r\nX: " + std::string(size, 'c') + "\r\n\r\n"));
  }
  RequestFence fence;
  fence.feed(chunkedPost("5;"));
  fence.admitBody(kBodyLimit);
  std::size_t taken = 0;
  const std::string piece(64U * 1024, 'a');
  for (int i = 0; i < 200 * 16; ++i) {
    taken += fence.feed(piece);
  }
  CHECK(taken <= piece.size());
  CHECK(fence.state() == RequestFence::State::kRefused);
}

TEST_CASE("trailers are dropped") {
  const GuestRequest request =
      expectComplete(chunkedPost("5\r\nhello\r\n0\r\nX-Key: forged\r\nHost: b\r\nX-Other: y\r\n\r\n"));
  CHECK(request.body == "hello");
  CHECK(request.fields == std::vector<HeaderField>{{"host", "a"}, {"transfer-encoding", "chunked"}});
  for (const char* trailer : {"Content-Length: 5", "Transfer-Encoding: chunked", "Connection: close", "Upgrade: h2c"}) {
    const ReadOutcome outcome = readRequest(chunkedPost("0\r\n" + std::string(trailer) + "\r\n\r\n") + kHidden);
    INFO(trailer);
    CHECK((outcome.word == "refused 400" || (outcome.word == "complete" && outcome.request.keepAlive)));
    CHECK(outcome.request.fields.size() == 2);
  }
  for (const char* trailer : {"no colon\r\n", ": x\r\n", "a b: c\r\n", "a\0b: c\r\n", "a: b\n"}) {
    expectRefused(chunkedPost("0\r\n" + std::string(trailer) + "\r\n"));
  }
}

TEST_CASE("a body has exactly the room that its rule gives") {
  const std::string full(kBodyLimit, 'b');
  CHECK(expectComplete(post("Content-Length: 1000\r\n", full)).body == full);
  expectRefused(post("Content-Length: 1001\r\n", full + "b"), 413);
  expectRefused(post("Content-Length: 999999999999999999\r\n", ""), 413);
  CHECK(expectComplete(chunkedPost("3e8\r\n" + full + "\r\n0\r\n\r\n")).body == full);
  expectRefused(chunkedPost("3e9\r\n" + full + "b\r\n0\r\n\r\n"), 413);
  expectRefused(chunkedPost("3e8\r\n" + full + "\r\n1\r\nb\r\n0\r\n\r\n"), 413);
  std::string single;
  for (std::size_t i = 0; i < kBodyLimit; ++i) {
    single += "1\r\nb\r\n";
  }
  CHECK(expectComplete(chunkedPost(single + "0\r\n\r\n")).body == full);
  expectRefused(chunkedPost(single + "1\r\nb\r\n0\r\n\r\n"), 413);

  CHECK(readRequest(post("Content-Length: 0\r\n", "") + kHidden, 0).word == "complete");
  CHECK(readRequest(chunkedPost("0\r\n\r\n") + kHidden, 0).word == "complete");
  CHECK(readRequest(chunkedPost("1\r\nb\r\n0\r\n\r\n"), 0).word == "refused 413");
  CHECK(readRequest(post("Content-Length: 1\r\n", "b"), 0).word == "refused 413");
}

TEST_CASE("a declared length over the limit is refused before a byte of the body") {
  RequestFence fence;
  fence.feed(post("Expect: 100-continue\r\nContent-Length: 1001\r\n", ""));
  REQUIRE(fence.state() == RequestFence::State::kHeaderDone);
  fence.admitBody(kBodyLimit);
  CHECK(fence.status() == 413);
}

TEST_CASE("whatever the bytes, the pieces they come in do not matter") {
  const std::vector<std::string> parts{"GET",
                                       "POST",
                                       "get",
                                       " ",
                                       " ",
                                       "/",
                                       "/x?y",
                                       "HTTP/1.1",
                                       "HTTP/1.0",
                                       "\r\n",
                                       "\r\n",
                                       "\r\n",
                                       "\r\n\r\n",
                                       "\n",
                                       "\r",
                                       "Host: a",
                                       "Content-Length: 5",
                                       "content-length: 1",
                                       "Transfer-Encoding: chunked",
                                       "Expect: 100-continue",
                                       "Connection: close",
                                       "X: y",
                                       ":",
                                       "\t",
                                       "hello",
                                       "5\r\nhello\r\n",
                                       "0\r\n\r\n",
                                       "0\r\n",
                                       "1;a=b\r\nx\r\n",
                                       "ff",
                                       std::string(1, '\0'),
                                       "\xff",
                                       std::string(3000, 'a')};
  const std::vector<std::string> starts{"", "GET / HTTP/1.1\r\nHost: a\r\n", chunkedPost(""),
                                        post("Content-Length: 5\r\n", "")};
  std::mt19937 random(27);
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
    readRequest(bytes);
  }
}

}  // namespace
}  // namespace stitchkit
