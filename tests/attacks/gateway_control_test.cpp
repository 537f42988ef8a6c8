// control of gateway_peers_test.cpp: the same clients, and the library's own server in the gateway's place.
#include "tests/attacks/gateway_client.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace stitchkit::testing {
namespace {

constexpr long kProtectedKib = 8L * 1024;

/// A program whose output can be awaited; killed at the end.
class Running {
 public:
  explicit Running(std::vector<std::string> argv, const std::string& socket) {
    int ends[2] = {-1, -1};
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    output_.reset(ends[0]);
    const UniqueFd writing(ends[1]);
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    SpawnOptions options;
    options.argv = std::move(argv);
    options.environment = {"STITCHKIT_TEST_SOCKET=" + socket};
    options.descriptors = {{null.get(), 0}, {writing.get(), 1}, {null.get(), 2}};
    pid_ = spawnProgram(options);
  }
  ~Running() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool saysSomething(Milliseconds within) const {
    pollfd waiter{output_.get(), POLLIN, 0};
    return ::poll(&waiter, 1, static_cast<int>(within.count())) == 1;
  }

 private:
  UniqueFd output_;
  pid_t pid_ = -1;
};

struct BareServer {
  BareServer() : running({BARE_SERVER, folder / "socket"}, "") { REQUIRE(running.saysSomething(Milliseconds(10000))); }

  std::string run(const std::string& mode, std::vector<std::string> more) const {
    more.insert(more.begin(), {hostProgram("gateway_peer"), mode, "x"});
    return runProgram(more, std::nullopt, {"STITCHKIT_TEST_SOCKET=" + folder / "socket"}).output;
  }
  [[nodiscard]] long peakKib() const { return countersOf(running.pid()).peakKib; }

  const ScratchFolder folder;
  const Running running;
};

TEST_CASE("control: a header without an end and bodies over the limit fill an unprotected server's memory") {
  const BareServer server;
  REQUIRE(server.run("get", {"/", "2"}) == "status=200\nstatus=200\n");
  long before = server.peakKib();
  CHECK(linesThatAre(server.run("header", {"33554432"}), "whole=yes") == 1);
  CHECK(server.peakKib() - before > kProtectedKib);
  CHECK(server.run("headers", {"10000"}) == "status=200\n");
  before = server.peakKib();
  CHECK(linesThatAre(server.run("bodies", {"33554432", "chunked", "4"}), "status=200") == 4);
  CHECK(server.peakKib() - before > kProtectedKib);
}

TEST_CASE("control: sixteen slow clients keep others from an unprotected server") {
  const BareServer server;
  const Running slow({hostProgram("gateway_peer"), "dribble", "x", "16"}, server.folder / "socket");
  // Its seventeenth request: an answer would come at once, or not before the sixteen have ended, which they do not.
  CHECK_FALSE(slow.saysSomething(Milliseconds(2000)));
}

}  // namespace
}  // namespace stitchkit::testing
