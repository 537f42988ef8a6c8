#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include <string>

#include "gateway/gateway.h"
#include "tests/gateway/peers.h"
#include "tests/support/scratch.h"

namespace stitchkit {
namespace {

using namespace testing;

mode_t modeOf(const std::string& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mode;
}

bool accepts(const UniqueFd& listening) {
  return UniqueFd(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC)).valid();
}

TEST_CASE("a gateway's socket is there for its own user alone") {
  const mode_t before = ::umask(0);
  ScratchFolder folder;
  const Result<UniqueFd> listening = listenInDirectory(folder.path(), "gateway.sock");
  ::umask(before);
  REQUIRE(listening.has_value());
  CHECK(modeOf(folder / "gateway.sock") == (S_IFSOCK | 0600));
  CHECK((::fcntl(listening->get(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK((::fcntl(listening->get(), F_GETFL) & O_NONBLOCK) != 0);
  CHECK_FALSE(accepts(*listening));
  const Wire guest = connectToUnix(folder / "gateway.sock");
  CHECK(accepts(*listening));
}

TEST_CASE("a directory may have a path of any length") {
  ScratchFolder folder;
  std::string path = folder.path();
  for (int i = 0; i < 4; ++i) {
    path += "/" + std::string(200, static_cast<char>('a' + i));
    REQUIRE(::mkdir(path.c_str(), 0755) == 0);
  }
  const Result<UniqueFd> listening = listenInDirectory(path, "gateway.sock");
  REQUIRE(listening.has_value());
  CHECK(modeOf(path + "/gateway.sock") == (S_IFSOCK | 0600));
  const UniqueFd inside(::open(path.c_str(), O_PATH | O_CLOEXEC));
  const Wire guest = connectToUnix("/proc/self/fd/" + std::to_string(inside.get()) + "/gateway.sock");
  CHECK(accepts(*listening));
}

TEST_CASE("what is left in the socket's place goes, and nothing else") {
  ScratchFolder folder;
  writeFile(folder / "precious", "kept");
  SECTION("a stale socket") {
    REQUIRE(listenInDirectory(folder.path(), "gateway.sock").has_value());
    CHECK(modeOf(folder / "gateway.sock") == (S_IFSOCK | 0600));
  }
  SECTION("a file") {
    writeFile(folder / "gateway.sock", "x");
  }
  SECTION("a link, whose target stays") {
    REQUIRE(::symlink((folder / "precious").c_str(), (folder / "gateway.sock").c_str()) == 0);
  }
  const Result<UniqueFd> listening = listenInDirectory(folder.path(), "gateway.sock");
  REQUIRE(listening.has_value());
  CHECK(modeOf(folder / "gateway.sock") == (S_IFSOCK | 0600));
  CHECK(readFile(folder / "precious") == "kept");
  const Wire guest = connectToUnix(folder / "gateway.sock");
  CHECK(accepts(*listening));
}

TEST_CASE("a socket that cannot be made is told without its path") {
  ScratchFolder folder;
  REQUIRE(::mkdir((folder / "gateway.sock").c_str(), 0755) == 0);
  writeFile(folder / "file", "x");
  for (const std::string& directory : {folder.path(), folder / "absent", folder / "file"}) {
    const Result<UniqueFd> listening = listenInDirectory(directory, "gateway.sock");
    REQUIRE_FALSE(listening.has_value());
    CHECK(listening.error().kind == ErrorKind::kNetworkDenied);
    CHECK(listening.error().message.find(folder.path()) == std::string::npos);
  }
}

}  // namespace
}  // namespace stitchkit
