#include "backend/doctor/made_directories.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/support/scratch.h"

namespace stitchkit::testing {
namespace {

namespace fs = std::filesystem;

TEST_CASE("what was missing goes, as far as it is empty", "[made]") {
  const ScratchFolder folder;
  fs::create_directory(folder / "there");
  const MadeDirectories made(folder / "there/a/b/c/");
  fs::create_directories(folder / "there/a/b/c");
  SECTION("all of it") {
    made.removeEmpty();
    CHECK(fs::exists(folder / "there"));
    CHECK(!fs::exists(folder / "there/a"));
  }
  SECTION("up to what somebody else has put there") {
    writeFile(folder / "there/a/file", "");
    made.removeEmpty();
    CHECK(fs::exists(folder / "there/a/file"));
    CHECK(!fs::exists(folder / "there/a/b"));
  }
  SECTION("nothing that holds something") {
    writeFile(folder / "there/a/b/c/file", "");
    made.removeEmpty();
    CHECK(fs::exists(folder / "there/a/b/c/file"));
  }
  SECTION("nothing through a link that was put in its place") {
    fs::create_directories(folder / "elsewhere/b/c");
    fs::remove_all(folder / "there/a");
    fs::create_directory_symlink(folder / "elsewhere", folder / "there/a");
    made.removeEmpty();
    CHECK(fs::exists(folder / "elsewhere/b/c"));
  }
}

TEST_CASE("what was there stays", "[made]") {
  const ScratchFolder folder;
  fs::create_directories(folder / "a/b");
  MadeDirectories(folder / "a/b").removeEmpty();
  CHECK(fs::exists(folder / "a/b"));
}

}  // namespace
}  // namespace stitchkit::testing
