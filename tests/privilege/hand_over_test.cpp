// These run as root, in the situation of a sidecar that root has started. An ordinary user has nothing to hand over.
#include "backend/privilege/hand_over.h"

#include "tests/privilege/users.h"
#include "tests/support/forked.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace stitchkit {
namespace {

using testing::isRoot;
using testing::kOrdinaryUid;
using testing::kUser;
using testing::ownerOf;
using testing::runForked;
using testing::ScratchFolder;
using testing::writeFile;

const std::string kNamespace(64, 'a');

bool mayHandOver() {
  if (isRoot()) {
    return true;
  }
  WARN("not root: there is nothing to hand over");
  return false;
}

struct stat infoOf(const std::string& path) {
  struct stat info {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info;
}

mode_t modeOf(const std::string& path) {
  return infoOf(path).st_mode & 07777;
}

std::string reasonFor(const std::string& path, const TargetUser& user = kUser) {
  const auto outcome = handOverStateDirectory(path, user);
  return outcome ? "" : outcome.error().reason;
}

// A state directory as a sidecar that stayed root leaves it.
void makeState(const std::string& path) {
  for (const std::string& folder : {path, path + "/support", path + "/" + kNamespace, path + "/" + kNamespace + "/x"}) {
    REQUIRE(::mkdir(folder.c_str(), 0755) == 0);
  }
  writeFile(path + "/" + kNamespace + "/x/file", "text");
}

TEST_CASE("a missing directory is made for the user, folders above it for everybody to pass") {
  if (!mayHandOver()) {
    return;
  }
  const ScratchFolder folder;
  const mode_t formerMask = ::umask(077);
  const std::string reason = reasonFor(folder / "a/b/state");
  ::umask(formerMask);
  REQUIRE(reason.empty());
  REQUIRE(ownerOf(folder / "a") == 0);
  REQUIRE(modeOf(folder / "a") == 0755);
  REQUIRE(modeOf(folder / "a/b") == 0755);
  REQUIRE(ownerOf(folder / "a/b/state") == kOrdinaryUid);
  REQUIRE(modeOf(folder / "a/b/state") == 0700);
  const auto used =
      runForked([&] { return writeFile(folder / "a/b/state/file", "x"), std::string("written"); }, kOrdinaryUid);
  REQUIRE(used.text == "written");
  // Again: nothing to do.
  REQUIRE(reasonFor(folder / "a/b/state").empty());
}

TEST_CASE("a state directory of root's is handed over whole") {
  if (!mayHandOver()) {
    return;
  }
  const ScratchFolder folder;
  const std::string state = folder / "state";
  makeState(state);
  const std::string inside = state + "/" + kNamespace + "/x/";
  REQUIRE(::link((inside + "file").c_str(), (inside + "again").c_str()) == 0);
  REQUIRE(::symlink("/etc/passwd", (inside + "link").c_str()) == 0);
  REQUIRE(::symlink("/nonexistent", (inside + "dangling").c_str()) == 0);
  REQUIRE(::mkfifo((inside + "fifo").c_str(), 0600) == 0);
  writeFile(inside + "suid", "", 0755);
  REQUIRE(::chmod((inside + "suid").c_str(), 04755) == 0);
  REQUIRE(reasonFor(state).empty());
  for (const char* name : {"file", "again", "link", "dangling", "fifo", "suid"}) {
    REQUIRE(ownerOf(inside + name) == kOrdinaryUid);
  }
  REQUIRE(ownerOf(state) == kOrdinaryUid);
  REQUIRE(ownerOf(state + "/support") == kOrdinaryUid);
  REQUIRE(modeOf(state) == 0700);
  REQUIRE(modeOf(inside + "suid") == 0755);
  REQUIRE(ownerOf("/etc/passwd") == 0);
}

TEST_CASE("an interrupted hand-over is done again") {
  if (!mayHandOver()) {
    return;
  }
  const ScratchFolder folder;
  const std::string state = folder / "state";
  makeState(state);
  const std::string inside = state + "/" + kNamespace + "/x/";
  for (int i = 0; i < 400; ++i) {
    writeFile(inside + std::to_string(i), "");
  }
  int questions = 0;
  // The check goes over the tree twice, then the gift begins.
  const auto broken = handOverStateDirectory(state, kUser, [&] { return ++questions < 4; });
  REQUIRE_FALSE(broken.has_value());
  REQUIRE(broken.error().kind == ErrorKind::kCancelled);
  REQUIRE(ownerOf(state) == 0);
  REQUIRE(reasonFor(state).empty());
  REQUIRE(ownerOf(state) == kOrdinaryUid);
  REQUIRE(ownerOf(inside + "399") == kOrdinaryUid);
  REQUIRE(ownerOf(inside + "0") == kOrdinaryUid);
}

TEST_CASE("a directory with other things in it is refused and left as it was") {
  if (!mayHandOver()) {
    return;
  }
  const ScratchFolder folder;
  const std::string state = folder / "state";
  makeState(state);
  SECTION("a file") {
    writeFile(state + "/notes.txt", "mine");
  }
  SECTION("a folder of another name") {
    ::mkdir((state + "/lib").c_str(), 0755);
  }
  SECTION("a hidden folder") {
    ::mkdir((state + "/.ssh").c_str(), 0755);
  }
  SECTION("a file with a namespace's name") {
    writeFile(state + "/" + std::string(64, 'b'), "");
  }
  SECTION("a link with a namespace's name") {
    REQUIRE(::symlink("/etc", (state + "/" + std::string(64, 'b')).c_str()) == 0);
  }
  SECTION("upper case") {
    ::mkdir((state + "/" + std::string(64, 'A')).c_str(), 0755);
  }
  SECTION("a name outside for a file inside") {
    writeFile(folder / "outside", "secret");
    REQUIRE(::link((folder / "outside").c_str(), (state + "/support/inside").c_str()) == 0);
  }
  SECTION("a device") {
    REQUIRE(::mknod((state + "/support/null").c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0);
  }
  REQUIRE(reasonFor(state) == "state-directory-in-use");
  REQUIRE(ownerOf(state) == 0);
  REQUIRE(modeOf(state) == 0755);
  REQUIRE(ownerOf(state + "/" + kNamespace + "/x/file") == 0);
}

TEST_CASE("what belongs to a third user is refused") {
  if (!mayHandOver()) {
    return;
  }
  const ScratchFolder folder;
  const std::string state = folder / "state";
  makeState(state);
  SECTION("the directory") {
    REQUIRE(::chown(state.c_str(), 12345, 12345) == 0);
  }
  SECTION("an entry") {
    REQUIRE(::chown((state + "/" + kNamespace + "/x/file").c_str(), 12345, 12345) == 0);
  }
  REQUIRE(reasonFor(state) == "state-directory-owner");
  REQUIRE(ownerOf(state + "/support") == 0);
}

TEST_CASE("a folder that others write to is never taken, empty or not") {
  if (!mayHandOver()) {
    return;
  }
  const ScratchFolder folder;
  const std::string state = folder / "state";
  REQUIRE(::mkdir(state.c_str(), 0755) == 0);
  REQUIRE(::chmod(state.c_str(), 01777) == 0);
  REQUIRE(reasonFor(state) == "state-directory-in-use");
  REQUIRE(ownerOf(state) == 0);
  REQUIRE(modeOf(state) == 01777);
}

TEST_CASE("links on the way: root's are followed, another's are not") {
  if (!mayHandOver()) {
    return;
  }
  const ScratchFolder folder;
  const ScratchFolder elsewhere;
  const std::string link = folder / "link";
  REQUIRE(::symlink(elsewhere.path().c_str(), link.c_str()) == 0);
  SECTION("root's") {
    REQUIRE(reasonFor(link + "/state").empty());
    REQUIRE(ownerOf(elsewhere / "state") == kOrdinaryUid);
  }
  SECTION("planted") {
    REQUIRE(::lchown(link.c_str(), 12345, 12345) == 0);
    REQUIRE(reasonFor(link + "/state") == "state-directory-link");
    REQUIRE(::access((elsewhere / "state").c_str(), F_OK) != 0);
    // As the directory itself, too.
    REQUIRE(reasonFor(link) == "state-directory-link");
  }
  SECTION("in circles") {
    REQUIRE(::symlink("loop", (folder / "loop").c_str()) == 0);
    REQUIRE(reasonFor(folder / "loop/state") == "state-directory-path");
  }
}

TEST_CASE("paths that cannot be one directory are refused") {
  if (!mayHandOver()) {
    return;
  }
  const ScratchFolder folder;
  writeFile(folder / "file", "");
  REQUIRE(reasonFor("relative/state") == "state-directory-path");
  REQUIRE(reasonFor("") == "state-directory-path");
  REQUIRE(reasonFor(folder / "a/../state") == "state-directory-path");
  REQUIRE(reasonFor(folder / "file") == "state-directory-path");
  REQUIRE(reasonFor(folder / "file/state") == "state-directory-path");
  REQUIRE(reasonFor(folder / std::string(300, 'n')) == "state-directory-path");
  REQUIRE(reasonFor(folder / std::string(5000, 'n')) == "state-directory-path");
  REQUIRE(reasonFor("/") == "state-directory-in-use");
}

TEST_CASE("a directory that the user cannot reach is refused before anything is made, by the folder's name") {
  if (!mayHandOver()) {
    return;
  }
  const ScratchFolder folder;
  REQUIRE(::mkdir((folder / "closed").c_str(), 0700) == 0);
  const auto outcome = handOverStateDirectory(folder / "closed/a/state", kUser);
  REQUIRE_FALSE(outcome.has_value());
  REQUIRE(outcome.error().reason == "state-directory-not-searchable");
  REQUIRE(outcome.error().privateDetail.find((folder / "closed") + " is not searchable") != std::string::npos);
  REQUIRE(outcome.error().message.find('/') == std::string::npos);
  REQUIRE(outcome.error().hint.find("chmod o+x") != std::string::npos);
  REQUIRE(::access((folder / "closed/a").c_str(), F_OK) != 0);
  REQUIRE(::chmod((folder / "closed").c_str(), 0711) == 0);
  REQUIRE(reasonFor(folder / "closed/a/state").empty());
  // In the middle of what exists already.
  REQUIRE(::chmod((folder / "closed/a").c_str(), 0700) == 0);
  REQUIRE(reasonFor(folder / "closed/a/state") == "state-directory-not-searchable");
}

TEST_CASE("a mount inside is refused, also one of the same file system") {
  if (!mayHandOver()) {
    return;
  }
  const ScratchFolder folder;
  const ScratchFolder other;
  const std::string state = folder / "state";
  makeState(state);
  // In a mount namespace of the child's own.
  const auto outcome = runForked([&]() -> std::string {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount(other.path().c_str(), (state + "/support").c_str(), nullptr, MS_BIND, nullptr) != 0) {
      return "no mount";
    }
    const auto done = handOverStateDirectory(state, kUser);
    return done ? "done" : done.error().reason;
  });
  REQUIRE(outcome.text == "state-directory-mount");
  REQUIRE(ownerOf(other.path()) == 0);
}

}  // namespace
}  // namespace stitchkit
