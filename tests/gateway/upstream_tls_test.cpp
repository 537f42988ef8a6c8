// TLS to upstreams: whom the gateway trusts, and what an end means.
#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

#include "conformance/certificates.h"
#include "tests/gateway/caller.h"
#include "tests/gateway/peers.h"
#include "tests/gateway/policies.h"
#include "tests/support/scratch.h"

namespace stitchkit {
namespace {

using namespace testing;

/// An upstream with a certificate of a kind, called by a name.
class TlsScene {
 public:
  TlsScene(const std::string& kind, const std::string& host, bool trusted = true)
      : context_(conformance::makeServerContext(kind)),
        caller_(allowing("https://" + host + ":" + std::to_string(doorway_.port())), systemLookup,
                trusted ? caFile() : "") {
    REQUIRE(context_ != nullptr);
  }

  StartedCall start(const std::string& method = "GET", const std::string& body = "") {
    return caller_.start(method, body);
  }
  Wire accept() { return doorway_.accept(); }
  SSL_CTX* context() { return context_.get(); }
  Doorway& doorway() { return doorway_; }

 private:
  std::string caFile() {
    writeFile(folder_ / "ca.pem", conformance::authorityPem());
    return folder_ / "ca.pem";
  }

  ScratchFolder folder_;
  conformance::SslContext context_;
  Doorway doorway_;
  Caller caller_;
};

TEST_CASE("an upstream with a good certificate is spoken to, on one connection") {
  const std::string host = GENERATE("localhost", "127.0.0.1");
  TlsScene scene("good", host);
  StartedCall call = scene.start();
  Wire upstream = scene.accept();
  REQUIRE(upstream.startTls(scene.context()));
  CHECK(upstream.serverName() == (host == "localhost" ? host : ""));
  CHECK(upstream.readMessage().starts_with("GET / HTTP/1.1\r\n"));
  upstream.send(okResponse("one"));
  CHECK(call.result().response.ends_with("\r\n\r\none"));
  const std::string body(300000, 'x');
  StartedCall next = scene.start("POST", body);
  CHECK(upstream.readMessage().ends_with("\r\n\r\n" + body));
  upstream.send(okResponse(body));
  CHECK(next.result().response.ends_with("\r\n\r\n" + body));
  CHECK_FALSE(scene.doorway().knocked());
}

TEST_CASE("an upstream without a right certificate gets not a byte of the request") {
  const std::vector<std::pair<std::string, std::string>> kinds{
      {"expired", "localhost"},        {"notYet", "localhost"},
      {"selfSigned", "localhost"},     {"otherAuthority", "localhost"},
      {"wrongName", "localhost"},      {"wrongName", "127.0.0.1"},
      {"commonNameOnly", "localhost"}, {"commonNameBesideName", "127.0.0.1"}};
  for (const auto& [kind, host] : kinds) {
    INFO(kind << " for " << host);
    TlsScene scene(kind, host);
    StartedCall call = scene.start();
    Wire upstream = scene.accept();
    CHECK_FALSE(upstream.startTls(scene.context()));
    const CallResult result = call.result();
    CHECK(result.response.starts_with("HTTP/1.1 502 "));
    REQUIRE(result.failure.has_value());
    CHECK(result.failure->error.kind == ErrorKind::kInternal);
    CHECK(result.failure->error.message.starts_with("The upstream's certificate is refused: "));
    CHECK_FALSE(scene.doorway().knocked());
  }
}

TEST_CASE("the test's authority is trusted only where it is added") {
  TlsScene scene("good", "localhost", false);
  StartedCall call = scene.start();
  Wire upstream = scene.accept();
  CHECK_FALSE(upstream.startTls(scene.context()));
  CHECK(call.result().failure->error.message.starts_with("The upstream's certificate is refused: "));
}

TEST_CASE("versions of TLS before 1.2 are refused") {
  TlsScene scene("good", "localhost");
  ::SSL_CTX_set_security_level(scene.context(), 0);
  REQUIRE(::SSL_CTX_set_min_proto_version(scene.context(), TLS1_VERSION) == 1);
  REQUIRE(::SSL_CTX_set_max_proto_version(scene.context(), TLS1_1_VERSION) == 1);
  StartedCall call = scene.start();
  Wire upstream = scene.accept();
  CHECK_FALSE(upstream.startTls(scene.context()));
  CHECK(call.result().failure->error.kind == ErrorKind::kInternal);
}

TEST_CASE("an upstream that does not speak TLS is a failure") {
  TlsScene scene("good", "localhost");
  StartedCall call = scene.start();
  Wire upstream = scene.accept();
  SECTION("but HTTP") {
    upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  }
  SECTION("but ends") {
    upstream.close();
  }
  SECTION("but resets") {
    upstream.reset();
  }
  const CallResult result = call.result();
  CHECK(result.response.starts_with("HTTP/1.1 502 "));
  CHECK(result.failure->error.kind == ErrorKind::kInternal);
}

TEST_CASE("under TLS only a farewell ends an answer") {
  const bool farewell = GENERATE(true, false);
  TlsScene scene("good", "localhost");
  StartedCall call = scene.start();
  Wire upstream = scene.accept();
  REQUIRE(upstream.startTls(scene.context()));
  upstream.readMessage();
  upstream.send("HTTP/1.1 200 OK\r\n\r\nto the end");
  if (farewell) {
    upstream.finishWriting();
  }
  upstream.close();
  const CallResult result = call.result();
  if (farewell) {
    CHECK(result.response.ends_with("\r\n\r\nto the end"));
  } else {
    CHECK(result.response.starts_with("HTTP/1.1 502 "));
    CHECK(result.failure->error.kind == ErrorKind::kInternal);
  }
}

TEST_CASE("a kept TLS connection that has ended is not used") {
  TlsScene scene("good", "localhost");
  StartedCall call = scene.start();
  Wire upstream = scene.accept();
  REQUIRE(upstream.startTls(scene.context()));
  upstream.readMessage();
  upstream.send(okResponse("one"));
  call.result();
  SECTION("with a farewell") {
    upstream.finishWriting();
    upstream.close();
  }
  SECTION("without one") {
    upstream.close();
  }
  StartedCall next = scene.start("POST", "once");
  Wire fresh = scene.accept();
  REQUIRE(fresh.startTls(scene.context()));
  fresh.readMessage();
  fresh.send(okResponse("two"));
  CHECK(next.result().response.ends_with("\r\n\r\ntwo"));
}

TEST_CASE("a file of authorities is read at start") {
  ScratchFolder folder;
  writeFile(folder / "good.pem", conformance::authorityPem());
  writeFile(folder / "bad.pem", "no certificate");
  writeFile(folder / "empty.pem", "");
  CHECK(checkCaFile(folder / "good.pem").has_value());
  for (const char* name : {"bad.pem", "empty.pem", "absent.pem"}) {
    const Result<void> checked = checkCaFile(folder / name);
    REQUIRE_FALSE(checked.has_value());
    CHECK(checked.error().message.find(folder.path()) == std::string::npos);
  }
}

}  // namespace
}  // namespace stitchkit
