#include "backend/privilege/steward.h"

#include "rpc/base/unique_fd.h"
#include "tests/privilege/users.h"
#include "tests/support/forked.h"
#include "tests/support/processes.h"
#include "tests/support/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <array>
#include <cstdlib>

namespace stitchkit {
namespace {

using testing::becomeUser;
using testing::descendantsOf;
using testing::eventually;
using testing::isRoot;
using testing::kOrdinaryUid;
using testing::kUser;
using testing::ownerOf;
using testing::readFile;
using testing::runForked;
using testing::ScratchFolder;
using testing::statusLine;

// A child in a sidecar's situation: the steward is started, then root is given up.
std::string withSteward(const std::function<std::string(Steward&)>& work) {
  return runForked([&]() -> std::string {
           auto steward = Steward::start(kUser);
           if (!steward) {
             return "not started";
           }
           becomeUser(kOrdinaryUid);
           return work(*steward);
         })
      .text;
}

TEST_CASE("no steward: hand-overs succeed without doing anything") {
  Steward none;
  REQUIRE(none.pid() == -1);
  REQUIRE(none.handOver("/nonexistent/x").has_value());
  none.dismiss();
}

TEST_CASE("the steward hands one directory over, and then is gone") {
  if (!isRoot()) {
    return;
  }
  const ScratchFolder folder;
  const std::string said = withSteward([&](Steward& steward) -> std::string {
    const pid_t pid = steward.pid();
    if (!steward.handOver(folder / "state")) {
      return "refused";
    }
    testing::writeFile(folder / "state/file", "by the user");
    const bool second = steward.handOver(folder / "other").has_value();
    steward.dismiss();
    const bool gone = ::kill(pid, 0) != 0 && errno == ESRCH;
    return std::string(second ? "served twice" : "served once") + (gone ? ", gone" : ", alive");
  });
  REQUIRE(said == "served once, gone");
  REQUIRE(ownerOf(folder / "state") == kOrdinaryUid);
  REQUIRE(ownerOf(folder / "other") == static_cast<uid_t>(-1));
}

TEST_CASE("the steward's refusal arrives whole") {
  if (!isRoot()) {
    return;
  }
  const ScratchFolder folder;
  REQUIRE(::mkdir((folder / "closed").c_str(), 0700) == 0);
  const std::string said = withSteward([&](Steward& steward) -> std::string {
    const auto outcome = steward.handOver(folder / "closed/state");
    if (outcome) {
      return "done";
    }
    const Error error = outcome.error();
    return std::string(error.kind == ErrorKind::kUnavailable ? "unavailable " : "other ") + error.reason + " " +
           error.privateDetail;
  });
  REQUIRE(said == "unavailable state-directory-not-searchable " + (folder / "closed") + " is not searchable");
}

TEST_CASE("a relative path is meant from the sidecar's folder") {
  if (!isRoot()) {
    return;
  }
  const ScratchFolder folder(kOrdinaryUid);
  const std::string said = withSteward([&](Steward& steward) -> std::string {
    return ::chdir(folder.path().c_str()) == 0 && steward.handOver("state") ? "done" : "refused";
  });
  REQUIRE(said == "done");
  REQUIRE(ownerOf(folder / "state") == kOrdinaryUid);
}

TEST_CASE("an over-long request is refused before it is sent") {
  if (!isRoot()) {
    return;
  }
  const std::string said = withSteward([&](Steward& steward) -> std::string {
    const auto outcome = steward.handOver("/" + std::string(100000, 'x'));
    return outcome ? "done" : outcome.error().reason;
  });
  REQUIRE(said == "state-directory-path");
}

TEST_CASE("a steward that is not needed goes at once") {
  if (!isRoot()) {
    return;
  }
  const std::string said = withSteward([&](Steward& steward) -> std::string {
    const pid_t pid = steward.pid();
    steward.dismiss();
    steward.dismiss();
    return ::kill(pid, 0) != 0 && errno == ESRCH ? "gone" : "alive";
  });
  REQUIRE(said == "gone");
}

TEST_CASE("the steward dies with the sidecar, however that ends") {
  if (!isRoot()) {
    return;
  }
  const int signal = GENERATE(SIGKILL, SIGTERM, 0);
  int ends[2] = {-1, -1};
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  runForked([&]() -> std::string {
    auto steward = Steward::start(kUser);
    const pid_t pid = steward ? steward->pid() : -1;
    becomeUser(kOrdinaryUid);
    [[maybe_unused]] const ssize_t told = ::write(writing.get(), &pid, sizeof pid);
    if (signal != 0) {
      ::raise(signal);
    }
    ::_exit(0);  // without dismissing
  });
  writing.reset();
  pid_t pid = -1;
  REQUIRE(::read(reading.get(), &pid, sizeof pid) == sizeof pid);
  REQUIRE(pid > 0);
  // As the subreaper this test inherits it.
  REQUIRE(eventually([&] {
    testing::reapOrphans({});
    return ::kill(pid, 0) != 0;
  }));
}

TEST_CASE("the steward keeps nothing of the sidecar's") {
  if (!isRoot()) {
    return;
  }
  ::setenv("HOST_TOKEN", "steward-must-forget", 1);
  const UniqueFd secret(::open("/etc/hostname", O_RDONLY));  // not close-on-exec
  auto steward = Steward::start(kUser);
  ::unsetenv("HOST_TOKEN");
  REQUIRE(steward.has_value());
  const std::string proc = "/proc/" + std::to_string(steward->pid());
  // It is done with shedding when its own socket is all that is left beside the three streams.
  REQUIRE(eventually([&] { return testing::countersOf(steward->pid()).descriptors == 4; }));
  for (const char* stream : {"/fd/0", "/fd/1", "/fd/2"}) {
    std::array<char, 64> target{};
    REQUIRE(::readlink((proc + stream).c_str(), target.data(), target.size() - 1) > 0);
    REQUIRE(std::string(target.data()) == "/dev/null");
  }
  REQUIRE(statusLine(steward->pid(), "SigIgn") == "0000000000000000");
  REQUIRE(statusLine(steward->pid(), "SigBlk") == "0000000000000000");
  REQUIRE(readFile(proc + "/environ").find("steward-must-forget") == std::string::npos);
  const pid_t pid = steward->pid();
  steward->dismiss();
  REQUIRE(::kill(pid, 0) != 0);
}

}  // namespace
}  // namespace stitchkit
