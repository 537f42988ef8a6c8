// Files in the guest's view: links are resolved inside, and never lead outside.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>

#include "backend/launch/guest_file_operation.h"
#include "codingtools/file_error.h"
#include "tests/launch/launch_fixture.h"

using namespace stitchkit;
using namespace stitchkit::test;
namespace fs = std::filesystem;

namespace {

Result<UniqueFd> openAt(LaunchFixture& fixture, GuestOpenRequest request) {
  std::optional<Result<UniqueFd>> result;
  const auto operation = openInGuest(fixture.io, fixture.prepared(), request, std::chrono::seconds(10),
                                     [&](Result<UniqueFd> opened) { result.emplace(std::move(opened)); });
  fixture.io.restart();
  fixture.io.run();
  CHECK(liveSandboxes() == 0);
  return std::move(result.value());
}

Result<void> removeAt(LaunchFixture& fixture, const std::string& path) {
  std::optional<Result<void>> result;
  const auto operation = removeInGuest(fixture.io, fixture.prepared(), path, std::chrono::seconds(10),
                                       [&](Result<void> removed) { result.emplace(std::move(removed)); });
  fixture.io.restart();
  fixture.io.run();
  return std::move(result.value());
}

std::string contentOf(const UniqueFd& fd) {
  char bytes[256];
  const ssize_t size = ::read(fd.get(), bytes, sizeof bytes);
  return {bytes, size > 0 ? static_cast<std::size_t>(size) : 0};
}

std::string errnoOf(const Error& error) {
  CHECK(error.kind == ErrorKind::kPath);
  return error.details.empty() ? "" : std::get<std::string>(error.details[0].second);
}

}  // namespace

TEST_CASE("a path through links is opened as a guest would", "[files]") {
  LaunchFixture fixture;
  const std::string root = fixture.workspace();
  fs::create_directories(root + "/real");
  writeFile(root + "/real/file", "inside");
  fs::create_symlink("real", root + "/relative");
  fs::create_symlink("/workspace/real/file", root + "/absolute");
  fs::create_symlink("/etc/hostname", root + "/outside");
  fs::create_symlink("/etc/passwd", root + "/made");
  CHECK(contentOf(*openAt(fixture, {"/workspace/relative/file", O_RDONLY})) == "inside");
  CHECK(contentOf(*openAt(fixture, {"/workspace/absolute", O_RDONLY})) == "inside");
  CHECK(errnoOf(openAt(fixture, {"/workspace/outside", O_RDONLY}).error()) == "ENOENT");
  CHECK(contentOf(*openAt(fixture, {"/workspace/made", O_RDONLY})).find("agent") != std::string::npos);
  CHECK(errnoOf(openAt(fixture, {"/workspace/made", O_WRONLY | O_TRUNC}).error()) == "EROFS");
  CHECK(errnoOf(openAt(fixture, {"/workspace/relative/none", O_RDONLY}).error()) == "ENOENT");
}

TEST_CASE("a fault behind a link has the words that it has without one", "[files]") {
  LaunchFixture fixture;
  fs::create_directories(fixture.workspace() + "/real");
  writeFile(fixture.workspace() + "/real/file", "x");
  fs::create_symlink("real", fixture.workspace() + "/link");
  fs::create_symlink("circle", fixture.workspace() + "/circle");
  const auto said = [&](const std::string& path, int flags) { return openAt(fixture, {path, flags}).error().message; };
  CHECK(said("/workspace/link/none", O_RDONLY) == fileError(ENOENT, "").message);
  CHECK(said("/workspace/link", O_WRONLY) == fileError(EISDIR, "").message);
  CHECK(said("/workspace/link/file/x", O_RDONLY) == fileError(ENOTDIR, "").message);
  CHECK(said("/workspace/circle", O_RDONLY) == "The path leads through too many symbolic links");
}

TEST_CASE("a file is created through a link, with its directories", "[files]") {
  LaunchFixture fixture;
  const std::string root = fixture.workspace();
  fs::create_directories(root + "/real");
  fs::create_symlink("real", root + "/link");
  const GuestOpenRequest request{"/workspace/link/a/b/file", O_WRONLY | O_CREAT | O_TRUNC, 0644, true};
  const Result<UniqueFd> opened = openAt(fixture, request);
  REQUIRE(opened.has_value());
  CHECK(::fcntl(opened->get(), F_GETFD) == FD_CLOEXEC);
  CHECK(::write(opened->get(), "text", 4) == 4);
  CHECK(readFile(root + "/real/a/b/file") == "text");
  struct stat status {};
  REQUIRE(::stat((root + "/real/a").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0755);
  REQUIRE(::stat((root + "/real/a/b/file").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0644);
  fs::create_symlink("/nowhere", root + "/dangling");
  CHECK(errnoOf(openAt(fixture, {"/workspace/dangling/x/file", O_WRONLY | O_CREAT, 0644, true}).error()) != "");
}

TEST_CASE("opening a FIFO does not wait", "[files]") {
  LaunchFixture fixture;
  REQUIRE(::mkfifo((fixture.workspace() + "/fifo").c_str(), 0644) == 0);
  CHECK(openAt(fixture, {"/workspace/fifo", O_RDONLY}).has_value());
  CHECK(errnoOf(openAt(fixture, {"/workspace/fifo", O_WRONLY}).error()) == "ENXIO");
}

TEST_CASE("removal follows links in the middle, and none at the end or below", "[files]") {
  LaunchFixture fixture;
  const std::string root = fixture.workspace();
  fs::create_directories(root + "/real/tree/deep/er");
  fs::create_directories(root + "/kept");
  writeFile(root + "/kept/file", "x");
  writeFile(root + "/real/tree/file", "x");
  fs::create_symlink("real", root + "/link");
  fs::create_symlink("/workspace/kept", root + "/real/tree/deep/out");
  fs::create_symlink("/workspace/kept", root + "/real/last");
  CHECK(removeAt(fixture, "/workspace/link/tree").has_value());
  CHECK(!exists(root + "/real/tree"));
  CHECK(removeAt(fixture, "/workspace/link/last").has_value());
  CHECK(!exists(root + "/real/last"));
  CHECK(removeAt(fixture, "/workspace/link/last").has_value());
  CHECK(removeAt(fixture, "/workspace/kept/file/below").has_value());
  CHECK(exists(root + "/kept/file"));
}

TEST_CASE("a wide and a very deep tree are removed", "[files]") {
  LaunchFixture fixture;
  for (int i = 0; i < 60; ++i) {
    const std::string directory = fixture.workspace() + "/wide/" + std::to_string(i);
    fs::create_directories(directory);
    for (int j = 0; j < 20; ++j) {
      writeFile(directory + "/" + std::to_string(j), "");
    }
  }
  UniqueFd below(::open(fixture.workspace().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < 3000; ++i) {
    const char* name = i == 0 ? "deep" : "directory";
    REQUIRE(::mkdirat(below.get(), name, 0755) == 0);
    below = UniqueFd(::openat(below.get(), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  CHECK(removeAt(fixture, "/workspace/wide").has_value());
  CHECK(removeAt(fixture, "/workspace/deep").has_value());
  CHECK(fs::is_empty(fixture.workspace()));
}

TEST_CASE("a removal that is not allowed says why", "[files]") {
  LaunchFixture fixture;
  fs::create_symlink("/usr", fixture.workspace() + "/link");
  const Result<void> removed = removeAt(fixture, "/workspace/link/bin");
  REQUIRE(!removed.has_value());
  CHECK((errnoOf(removed.error()) == "EROFS" || errnoOf(removed.error()) == "EACCES"));
}

TEST_CASE("an operation can be cancelled", "[files]") {
  LaunchFixture fixture;
  std::optional<Result<void>> result;
  const auto operation = removeInGuest(fixture.io, fixture.prepared(), "/workspace/x", std::chrono::seconds(10),
                                       [&](Result<void> removed) { result.emplace(std::move(removed)); });
  operation->cancel();
  fixture.io.run();
  REQUIRE(result.has_value());
  REQUIRE(!result->has_value());
  CHECK(result->error().kind == ErrorKind::kCancelled);
  CHECK(liveSandboxes() == 0);
}
