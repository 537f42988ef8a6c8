#include "codingtools/tool_files.h"

#include "tests/codingtools/test_files.h"

#include <thread>

using namespace stitchkit;
using namespace stitchkit::test;

namespace {

/// A workspace with one of everything.
struct Fixture {
  Workspace workspace;
  ContainedDirectory directory = workspace.open();
  StagingDirectory staging{UniqueFd(::open(workspace.stagingPath.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC))};
  ToolFiles files{directory, staging};

  Fixture() {
    std::filesystem::create_directories(workspace / "d/e");
    writeText(workspace / "a.txt", "hello");
    writeText(workspace / "d/f", "x");
    std::filesystem::create_symlink("a.txt", workspace / "link");
    std::filesystem::create_symlink("d", workspace / "linked");
    std::filesystem::create_symlink("nope", workspace / "dangling");
    REQUIRE(::mkfifo((workspace / "fifo").c_str(), 0600) == 0);
  }

  [[nodiscard]] Result<ReplacedFile> write(const std::string& path, const std::string& content, bool overwrite) const {
    const Result<WritePlan> plan = files.planWrite(at(path));
    return plan ? files.write(*plan, content, overwrite ? ToolFiles::Existing::kReplaced : ToolFiles::Existing::kKept)
                : plan.error();
  }
};

void checkRefused(const Error& error, ErrorKind kind, const std::string& path) {
  CAPTURE(error.message);
  CHECK(error.kind == kind);
  CHECK_FALSE(error.hint.empty());
  REQUIRE(error.details.size() == 1);
  CHECK(std::get<std::string>(error.details.front().second) == path);
}

}  // namespace

TEST_CASE("regular files are opened, and all else is refused in words") {
  const Fixture fixture;
  const OpenedFile opened = fixture.files.open(at("a.txt")).value();
  CHECK(opened.bytes == 5);
  const std::vector<std::pair<const char*, ErrorKind>> refused{
      {"nope", ErrorKind::kNotFound},          {"nope/x", ErrorKind::kNotFound},
      {"d", ErrorKind::kBadRequest},           {"link", ErrorKind::kForbidden},
      {"dangling", ErrorKind::kForbidden},     {"linked/f", ErrorKind::kBadRequest},
      {"a.txt/below", ErrorKind::kBadRequest}, {"fifo", ErrorKind::kBadRequest},
  };
  for (const auto& [path, kind] : refused) {
    CAPTURE(path);
    const Result<OpenedFile> result = fixture.files.open(at(path));
    REQUIRE_FALSE(result.has_value());
    checkRefused(result.error(), kind, path);
  }
}

TEST_CASE("a plan says which directories a write makes") {
  const Fixture fixture;
  CHECK(fixture.files.planWrite(at("n"))->missingDirectories.empty());
  CHECK(fixture.files.planWrite(at("d/n"))->missingDirectories.empty());
  CHECK(fixture.files.planWrite(at("n/o/p/f"))->missingDirectories == std::vector<std::string>{"n", "n/o", "n/o/p"});
  CHECK(fixture.files.planWrite(at("d/o/f"))->missingDirectories == std::vector<std::string>{"d/o"});
  CHECK_FALSE(std::filesystem::exists(fixture.workspace / "n"));
  for (const char* path : {"a.txt/f", "a.txt/n/f", "linked/f", "linked/n/f", "dangling/f"}) {
    CAPTURE(path);
    const Result<WritePlan> plan = fixture.files.planWrite(at(path));
    REQUIRE_FALSE(plan.has_value());
    checkRefused(plan.error(), ErrorKind::kConflict, path);
  }
}

TEST_CASE("writing makes what is new and replaces only what it may") {
  const Fixture fixture;
  CHECK(fixture.write("n/o/f", "new", false).has_value());
  CHECK(readText(fixture.workspace / "n/o/f") == "new");
  REQUIRE(::chmod((fixture.workspace / "a.txt").c_str(), 0751) == 0);
  CHECK(fixture.write("a.txt", "other", true).has_value());
  CHECK(readText(fixture.workspace / "a.txt") == "other");
  CHECK(modeOf(fixture.workspace / "a.txt") == 0751);
  REQUIRE(::chmod((fixture.workspace / "a.txt").c_str(), 0400) == 0);
  for (const char* path : {"a.txt", "d", "link", "linked", "dangling", "fifo"}) {
    CAPTURE(path);
    checkRefused(fixture.write(path, "y", false).error(), ErrorKind::kConflict, path);
  }
  for (const char* path : {"d", "fifo"}) {
    CAPTURE(path);
    checkRefused(fixture.write(path, "y", true).error(), ErrorKind::kConflict, path);
  }
  for (const char* path : {"link", "dangling"}) {
    CAPTURE(path);
    checkRefused(fixture.write(path, "y", true).error(), ErrorKind::kForbidden, path);
  }
  CHECK(readText(fixture.workspace / "a.txt") == "other");
  CHECK(std::filesystem::is_empty(fixture.workspace.stagingPath));
}

TEST_CASE("of many that create one file exactly one succeeds, and shared directories are no conflict") {
  const Fixture fixture;
  std::atomic<int> created{0};
  std::atomic<int> conflicts{0};
  {
    std::vector<std::jthread> writers;
    for (int number = 0; number < 8; ++number) {
      writers.emplace_back([&, number] {
        const Result<ReplacedFile> same = fixture.write("new/dir/same", "s", false);
        created += same ? 1 : 0;
        conflicts += !same && same.error().kind == ErrorKind::kConflict ? 1 : 0;
        created += fixture.write("new/dir/own" + std::to_string(number), "o", false) ? 1 : 0;
      });
    }
  }
  CHECK(created == 1 + 8);
  CHECK(conflicts == 7);
}

TEST_CASE("what was looked at and has been replaced since is a conflict, and stays") {
  const Fixture fixture;
  const WritePlan plan = fixture.files.planWrite(at("d/new")).value();
  const FileIdentity edited = fixture.files.open(at("a.txt"))->identity;
  CHECK(fixture.files.rewrite(at("a.txt"), edited, "edited").has_value());
  CHECK(readText(fixture.workspace / "a.txt") == "edited");
  checkRefused(fixture.files.rewrite(at("a.txt"), edited, "again").error(), ErrorKind::kConflict, "a.txt");
  CHECK(readText(fixture.workspace / "a.txt") == "edited");
  std::filesystem::remove(fixture.workspace / "a.txt");
  checkRefused(fixture.files.rewrite(at("a.txt"), edited, "again").error(), ErrorKind::kConflict, "a.txt");
  CHECK_FALSE(std::filesystem::exists(fixture.workspace / "a.txt"));
  for (const char* replacement : {"dir", "link"}) {
    CAPTURE(replacement);
    std::filesystem::rename(fixture.workspace / "d", fixture.workspace / (std::string("old") + replacement));
    if (replacement == std::string("dir")) {
      std::filesystem::create_directory(fixture.workspace / "d");
    } else {
      std::filesystem::create_symlink(fixture.workspace.outside, fixture.workspace / "d");
    }
    checkRefused(fixture.files.write(plan, "x", ToolFiles::Existing::kReplaced).error(), ErrorKind::kConflict, "d/new");
    std::filesystem::rename(fixture.workspace / "d", fixture.workspace / (std::string("new") + replacement));
    std::filesystem::rename(fixture.workspace / (std::string("old") + replacement), fixture.workspace / "d");
  }
  CHECK(fixture.files.write(plan, "x", ToolFiles::Existing::kKept).has_value());
  CHECK(std::filesystem::is_empty(fixture.workspace.outside));
}
