#include "codingtools/directory_entries.h"

#include "tests/codingtools/test_files.h"

#include <catch2/catch.hpp>

#include <cerrno>
#include <filesystem>

using namespace stitchkit;
using namespace stitchkit::test;

TEST_CASE("directory entries: however few are held at once, all come, once and in order") {
  const Workspace workspace;
  std::vector<std::string> wanted;
  for (int i = 100; i < 130; ++i) {
    std::filesystem::create_directory(workspace / ("d" + std::to_string(i)));
    wanted.push_back("d" + std::to_string(i));
  }
  for (int i = 100; i < 170; ++i) {
    writeText(workspace / ("a" + std::to_string(i)), "");
    wanted.push_back("a" + std::to_string(i));
  }
  const UniqueFd directory(::open(workspace.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (const std::size_t capacity : {1U, 7U, 99U, 100U, 1000U}) {
    CAPTURE(capacity);
    DirectoryEntries entries;
    std::vector<std::string> found;
    do {
      REQUIRE(entries.read(directory.get(), capacity, {}) == 0);
      CHECK(entries.entries().size() <= capacity);
      for (const DirectoryEntry& entry : entries.entries()) {
        found.push_back(entry.name);
      }
    } while (entries.hasMore());
    CHECK(found == wanted);
  }
}

TEST_CASE("directory entries: a stop ends the reading") {
  const Workspace workspace;
  writeText(workspace / "a", "");
  const UniqueFd directory(::open(workspace.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::stop_source stop;
  stop.request_stop();
  DirectoryEntries entries;
  CHECK(entries.read(directory.get(), 10, stop.get_token()) == ECANCELED);
}
