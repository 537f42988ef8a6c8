#include "tests/support/sidecar.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <cstdlib>

namespace stitchkit::testing {
namespace {

struct FakePeer {
  FakePeer() { ::setenv("STITCHKIT_SANDBOX_BINARY", FAKE_PEER, 1); }
  ~FakePeer() { ::unsetenv("STITCHKIT_SANDBOX_BINARY"); }
};

TEST_CASE_METHOD(FakePeer, "a sidecar answers over each wiring") {
  SidecarOptions options;
  options.wiring = GENERATE(Wiring::kPipes, Wiring::kSocketPair, Wiring::kTerminal);
  options.startAs = GENERATE(from_range(startModes()));
  const StartAs startAs = options.startAs;
  Sidecar sidecar(std::move(options));
  const Json user = sidecar.call("user");
  REQUIRE(user.at("uid") == (startAs == StartAs::kRoot ? 0U : kOrdinaryUid));
  // Longer than a terminal's line and a pipe's buffer.
  const Json large{{"text", std::string(300000, 'x')}};
  REQUIRE(sidecar.call("echo", large) == large);
}

TEST_CASE_METHOD(FakePeer, "answers are found by id, notifications and requests are kept") {
  Sidecar sidecar;
  const auto first = sidecar.request("echo", {{"n", 1}});
  const auto second = sidecar.request("announce", {{"process", "p1"}});
  const auto third = sidecar.request("ask");
  REQUIRE(sidecar.response(third).at("result") == Json::object());
  REQUIRE(sidecar.response(first).at("result").at("n") == 1);
  REQUIRE(sidecar.response(second).at("result") == Json::object());
  REQUIRE(sidecar.notification("process.exit").at("params").at("process") == "p1");
  REQUIRE(sidecar.hostRequest().at("id") == "s1");
  REQUIRE(sidecar.callError("fail").at("code") == -32002);
  REQUIRE_THROWS_AS(sidecar.call("fail"), RpcError);
  REQUIRE_THROWS(sidecar.notification("process.exit", Milliseconds(20)));
}

TEST_CASE_METHOD(FakePeer, "the end of a sidecar is seen") {
  Sidecar sidecar;
  REQUIRE_FALSE(sidecar.waitForExit(Milliseconds(20)));
  sidecar.notify("exit", {{"code", 7}});
  REQUIRE(sidecar.waitForExit()->code == 7);
  REQUIRE_FALSE(sidecar.receiveLine());
  Sidecar other;
  other.call("echo");
  other.closeInput();
  REQUIRE(other.waitForExit()->code == 0);
  REQUIRE(other.stderrText().find("answered echo") != std::string::npos);
  Sidecar third;
  third.kill(SIGKILL);
  REQUIRE(third.waitForExit()->signal == SIGKILL);
}

TEST_CASE_METHOD(FakePeer, "both sides may be full at once") {
  Sidecar sidecar;
  const Json large{{"text", std::string(100000, 'y')}};
  std::vector<std::int64_t> ids;
  for (int i = 0; i < 50; ++i) {
    ids.push_back(sidecar.request("echo", large));
  }
  for (const auto id : ids) {
    REQUIRE(sidecar.response(id).at("result") == large);
  }
}

TEST_CASE("a scratch folder goes away, whatever is in it") {
  std::string path;
  {
    const ScratchFolder folder;
    path = folder.path();
    ::mkdir((folder / "closed").c_str(), 0700);
    writeFile(folder / "closed/file", "x", 0400);
    ::chmod((folder / "closed").c_str(), 0);
    REQUIRE(::access(path.c_str(), F_OK) == 0);
  }
  REQUIRE(::access(path.c_str(), F_OK) != 0);
}

}  // namespace
}  // namespace stitchkit::testing
