#include "backend/privilege/privilege.h"

#include "tests/privilege/users.h"
#include "tests/support/forked.h"
#include "tests/support/processes.h"
#include "tests/support/scratch.h"
#include "tests/support/spawn.h"

#include <fcntl.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <cstdlib>

namespace stitchkit {
namespace {

using testing::isRoot;
using testing::kOrdinaryUid;
using testing::runForked;
using testing::ScratchFolder;
using testing::statusLine;

PrivilegePlan planFor(const std::string& stateDirectory) {
  PrivilegePlan plan;
  plan.stateDirectory = stateDirectory;
  return plan;
}

// In a child: settles, then says what `look` sees.
std::string settled(const PrivilegePlan& plan, const std::function<std::string(Privilege&)>& look,
                    std::optional<uid_t> startAs = std::nullopt) {
  return runForked(
             [&]() -> std::string {
               auto privilege = settlePrivilege(plan);
               return privilege ? look(*privilege) : "error " + privilege.error().reason;
             },
             startAs)
      .text;
}

TEST_CASE("root is given up for good") {
  if (!isRoot()) {
    return;
  }
  const ScratchFolder folder;
  const std::string said = settled(planFor(folder / "state"), [](Privilege& privilege) -> std::string {
    std::string text = statusLine(::getpid(), "Uid") + "|" + statusLine(::getpid(), "Gid") + "|" +
                       statusLine(::getpid(), "Groups") + "|";
    for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
      text += statusLine(::getpid(), set) == "0000000000000000" ? "0" : "!";
    }
    text += ::setuid(0) == 0 || ::setresuid(0, 0, 0) == 0 ? "|came back" : "|gone";
    text += privilege.user && !privilege.stayedRoot ? "|dropped" : "|?";
    privilege.steward.dismiss();
    return text;
  });
  REQUIRE(said == "65534\t65534\t65534\t65534|65534\t65534\t65534\t65534||0000|gone|dropped");
}

TEST_CASE("capabilities go although securebits would keep them") {
  if (!isRoot()) {
    return;
  }
  const ScratchFolder folder;
  const std::string said = runForked([&]() -> std::string {
                             if (::prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP | SECBIT_KEEP_CAPS, 0, 0, 0) != 0) {
                               return "no securebits";
                             }
                             auto privilege = settlePrivilege(planFor(folder / "state"));
                             return privilege ? statusLine(::getpid(), "CapPrm") + statusLine(::getpid(), "CapEff")
                                              : privilege.error().reason;
                           }).text;
  REQUIRE(said == "00000000000000000000000000000000");
}

TEST_CASE("the state directory is the user's, and a steward waits for another") {
  if (!isRoot()) {
    return;
  }
  const ScratchFolder folder;
  const std::string said = settled(planFor(folder / "state"), [&](Privilege& privilege) -> std::string {
    testing::writeFile(privilege.stateDirectory + "/file", "x");
    const bool other = privilege.steward.handOver(folder / "other").has_value();
    privilege.steward.dismiss();
    testing::writeFile(folder / "other/file", "x");
    return other ? "both" : "one";
  });
  REQUIRE(said == "both");
}

TEST_CASE("what goes on working without root") {
  if (!isRoot()) {
    return;
  }
  const ScratchFolder folder;
  const std::string said = settled(planFor(folder / "state"), [&](Privilege& privilege) -> std::string {
    privilege.steward.dismiss();
    // The process is undumpable, so /proc/self is root's: reopening one's own descriptors works all the same.
    const int file = ::open((privilege.stateDirectory + "/f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const int again = ::open(("/proc/self/fd/" + std::to_string(file)).c_str(), O_RDONLY | O_CLOEXEC);
    std::string text = again >= 0 ? "reopened " : "not reopened ";
    // And a guest starts: it writes its uid map, which an undumpable process may not.
    const auto guest = testing::runProgram({"/usr/bin/bwrap",
                                            "--unshare-all",
                                            "--unshare-user",
                                            "--disable-userns",
                                            "--uid",
                                            "1000",
                                            "--gid",
                                            "1000",
                                            "--ro-bind",
                                            "/usr",
                                            "/usr",
                                            "--symlink",
                                            "usr/lib",
                                            "/lib",
                                            "--symlink",
                                            "usr/lib64",
                                            "/lib64",
                                            "--proc",
                                            "/proc",
                                            "--dev",
                                            "/dev",
                                            "/usr/bin/id",
                                            "-u"});
    return text + guest.output;
  });
  REQUIRE(said == "reopened 1000\n");
}

TEST_CASE("others with the same account cannot look into the sidecar") {
#if defined(__SANITIZE_ADDRESS__)
  WARN("the leak checker needs a dumpable process");
#else
  if (!isRoot()) {
    return;
  }
  const ScratchFolder folder;
  const std::string said = settled(planFor(folder / "state"), [](Privilege& privilege) -> std::string {
    privilege.steward.dismiss();
    const std::string proc = "/proc/" + std::to_string(::getpid());
    // A child of the same user, as any other process of that account.
    return testing::runForked([&]() -> std::string {
             const bool environ = ::open((proc + "/environ").c_str(), O_RDONLY | O_CLOEXEC) >= 0;
             const bool memory = ::open((proc + "/mem").c_str(), O_RDONLY | O_CLOEXEC) >= 0;
             return environ || memory ? "seen" : "hidden";
           })
        .text;
  });
  REQUIRE(said == "hidden");
#endif
}

TEST_CASE("--allow-root stays root and says so") {
  if (!isRoot()) {
    return;
  }
  const ScratchFolder folder;
  PrivilegePlan plan = planFor(folder / "state");
  plan.allowRoot = true;
  const std::string said = settled(plan, [](Privilege& privilege) -> std::string {
    return std::string(privilege.stayedRoot ? "stayed" : "?") + (::geteuid() == 0 ? " root" : " not root") +
           (privilege.user ? " user" : "") + (privilege.steward.pid() >= 0 ? " steward" : "");
  });
  REQUIRE(said == "stayed root");
}

TEST_CASE("an ordinary user has nothing to give up") {
  const ScratchFolder folder(kOrdinaryUid);
  const std::string said = settled(
      planFor(folder / "state"),
      [](Privilege& privilege) -> std::string {
        return std::string(privilege.stayedRoot || privilege.user || privilege.steward.pid() >= 0 ? "?" : "plain");
      },
      isRoot() ? std::optional<uid_t>(kOrdinaryUid) : std::nullopt);
  REQUIRE(said == "plain");
}

TEST_CASE("a plan that cannot be carried out ends with its reason, and nobody stays behind") {
  if (!isRoot()) {
    return;
  }
  const ScratchFolder folder;
  PrivilegePlan plan = planFor(folder / "state");
  const auto reason = [&] { return settled(plan, [](Privilege&) { return std::string("settled"); }); };
  plan.user = "root";
  REQUIRE(reason() == "error user-is-root");
  plan.user = "no-such-account";
  REQUIRE(reason() == "error user-unknown");
  plan.user = "nobody";
  plan.stateDirectory = "";
  REQUIRE(reason() == "error state-directory-path");
  plan.stateDirectory = "/";
  REQUIRE(reason() == "error state-directory-in-use");
  REQUIRE(testing::descendantsOf(::getpid()).empty());
}

TEST_CASE("root's home is no place for an ordinary user's state") {
  if (!isRoot()) {
    return;
  }
  const ScratchFolder home;
  REQUIRE(::chmod(home.path().c_str(), 0711) == 0);
  const auto place = [&] {
    return runForked([&]() -> std::string {
             ::unsetenv("XDG_STATE_HOME");
             ::setenv("HOME", home.path().c_str(), 1);
             auto privilege = settlePrivilege(PrivilegePlan{});
             return privilege ? privilege->stateDirectory : privilege.error().reason;
           })
        .text;
  };
  REQUIRE(place() == home / ".local/state/stitchkit-sandbox");
}

}  // namespace
}  // namespace stitchkit
