#include "backend/launch/support_files.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "backend/launch/launch_helper/embedded_helper.h"
#include "tests/launch/launch_fixture.h"

using namespace stitchkit;
using namespace stitchkit::test;
namespace fs = std::filesystem;

namespace {

int setsIn(const std::string& directory) {
  return static_cast<int>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("the made /etc holds what guests need and no secret", "[support]") {
  const TemporaryDirectory directory;
  const mode_t before = ::umask(077);
  SupportFiles support(directory.path() + "/state/support");
  const Result<SupportPaths> paths = support.ensure();
  ::umask(before);
  REQUIRE(paths.has_value());
  const std::string& etc = paths->etcDirectory;
  CHECK(readFile(etc + "/passwd").find("agent:x:1000:1000:Agent:/workspace:/bin/sh\n") != std::string::npos);
  CHECK(readFile(etc + "/group").find("agent:x:1000:\n") != std::string::npos);
  CHECK(readFile(etc + "/hosts").find("127.0.1.1 sandbox.localdomain sandbox\n") != std::string::npos);
  CHECK(readFile(etc + "/nsswitch.conf").find("hosts: files dns\n") != std::string::npos);
  CHECK(exists(etc + "/resolv.conf"));
  CHECK(readFile(etc + "/resolv.conf").empty());
  for (const char* path : {"/ld.so.cache", "/localtime", "/alternatives", "/ssl/certs", "/ssl/openssl.cnf"}) {
    CHECK(exists(etc + path) == exists("/etc" + std::string(path)));
  }
  CHECK(fs::is_symlink(etc + "/alternatives/awk") == fs::is_symlink("/etc/alternatives/awk"));
  CHECK(!exists(etc + "/ssl/private"));
  CHECK(!exists(etc + "/shadow"));
  CHECK(readFile(paths->helper) == launchHelperImage());
  for (const auto& [path, mode] : {std::pair<std::string, mode_t>{etc, 0755},
                                   {etc + "/..", 0755},
                                   {etc + "/ssl", 0755},
                                   {etc + "/passwd", 0644},
                                   {paths->helper, 0755}}) {
    struct stat status {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == mode);
  }
}

TEST_CASE("one set serves all, and nothing else stays", "[support]") {
  const TemporaryDirectory directory;
  SupportFiles first(directory.path());
  SupportFiles second(directory.path());
  const Result<SupportPaths> paths = first.ensure();
  REQUIRE(paths.has_value());
  CHECK(second.ensure()->helper == paths->helper);
  CHECK(first.ensure()->helper == paths->helper);
  CHECK(setsIn(directory.path()) == 1);
}

TEST_CASE("sidecars that race make one set", "[support]") {
  const TemporaryDirectory directory;
  std::vector<pid_t> racers;
  for (int i = 0; i < 8; ++i) {
    racers.push_back(::fork());
    if (racers.back() == 0) {
      SupportFiles support(directory.path());
      const Result<SupportPaths> paths = support.ensure();
      ::_exit(paths && readFile(paths->helper) == launchHelperImage() ? 0 : 1);
    }
  }
  for (const pid_t racer : racers) {
    int status = -1;
    ::waitpid(racer, &status, 0);
    CHECK(status == 0);
  }
  CHECK(setsIn(directory.path()) == 1);
}

TEST_CASE("a set that nobody uses goes, one in use and foreign files stay", "[support]") {
  const TemporaryDirectory directory;
  SupportFiles user(directory.path());
  const std::string used = fs::path(user.ensure()->helper).parent_path();
  const std::string older = directory.path() + "/" + std::string(64, 'a');
  fs::rename(used, older);  // still under user's lock, as a set of another version would be
  const std::string unused = directory.path() + "/" + std::string(64, 'b');
  fs::create_directories(unused + "/etc");
  fs::create_directories(directory.path() + "/.new-broken/etc");
  fs::create_directories(directory.path() + "/foreign");
  SupportFiles other(directory.path());
  REQUIRE(other.ensure().has_value());
  CHECK(exists(older));
  CHECK(!exists(unused));
  CHECK(!exists(directory.path() + "/.new-broken"));
  CHECK(exists(directory.path() + "/foreign"));
}

TEST_CASE("a set that was damaged is made again", "[support]") {
  const TemporaryDirectory directory;
  for (const char* damaged : {"/launch-helper", "/etc/passwd", "/etc/ld.so.cache"}) {
    CAPTURE(damaged);
    std::string root;
    {
      SupportFiles support(directory.path());
      const std::string helper = support.ensure()->helper;
      root = helper.substr(0, helper.rfind('/'));
    }
    REQUIRE(::truncate((root + damaged).c_str(), 3) == 0);
    SupportFiles again(directory.path());
    const Result<SupportPaths> paths = again.ensure();
    REQUIRE(paths.has_value());
    CHECK(readFile(paths->helper) == launchHelperImage());
    CHECK(readFile(root + damaged).size() > 3);
    CHECK(setsIn(directory.path()) == 1);
  }
}

TEST_CASE("where nothing can be made it is unavailable", "[support]") {
  SupportFiles support("/proc/nowhere");
  const Result<SupportPaths> paths = support.ensure();
  REQUIRE(!paths.has_value());
  CHECK(paths.error().kind == ErrorKind::kUnavailable);
  CHECK(paths.error().message.find('/') == std::string::npos);
}
