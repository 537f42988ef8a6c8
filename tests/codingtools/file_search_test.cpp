#include "codingtools/file_search.h"

#include "tests/codingtools/test_files.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace stitchkit;
using namespace stitchkit::test;

namespace {

FileSearch literal(std::string query) {
  return {std::move(query), FileSearch::Mode::kContent, false, 0, std::nullopt};
}

FileSearch expression(std::string query) {
  return {std::move(query), FileSearch::Mode::kContent, true, 0, std::nullopt};
}

FileSearch inPaths(std::string query) {
  return {std::move(query), FileSearch::Mode::kPath, false, 0, std::nullopt};
}

SearchResult search(const Workspace& workspace, const FileSearch& what, const SearchScope& scope = {},
                    unsigned threads = 2) {
  const ContainedDirectory directory = workspace.open();
  Result<SearchResult> result = searchFilesWithThreads(directory, what, scope, threads, {});
  requireOk(result);
  return std::move(*result);
}

/// `path:line:text`, or the path alone.
std::vector<std::string> matchesOf(const SearchResult& result) {
  std::vector<std::string> matches;
  for (const SearchMatch& match : result.matches) {
    matches.push_back(match.line == 0 ? match.path : match.path + ':' + std::to_string(match.line) + ':' + match.text);
  }
  return matches;
}

using Matches = std::vector<std::string>;

/// All of a result in one text.
std::string written(const SearchResult& result) {
  std::string text;
  for (const SearchMatch& match : result.matches) {
    text += match.path + ':' + std::to_string(match.line) + ':' + match.text + '\n';
    for (const auto* const lines : {&match.before, &match.after}) {
      for (const std::string& line : *lines) {
        text += "  " + line + '\n';
      }
    }
  }
  for (const DeniedPath& denied : result.denied) {
    text += denied.path + (denied.directory ? "/ denied\n" : " denied\n");
  }
  return text + std::to_string(result.scannedFiles) + ' ' + std::to_string(result.skippedDirectories) + ' ' +
         std::to_string(result.skippedSymlinks) + (result.truncated ? " truncated" : "") +
         (result.deniedTruncated ? " denied truncated" : "");
}

/// Denies names that end in 7.
class SevenGate : public PathGate {
 public:
  Result<std::vector<bool>> allowed(const std::vector<std::string>& paths, const std::stop_token&) override {
    std::vector<bool> answers;
    for (const std::string& path : paths) {
      answers.push_back(path.back() != '7');
    }
    return answers;
  }
};

void makeTree(const Workspace& workspace) {
  std::mt19937 random(8);
  for (int i = 0; i < 700; ++i) {
    const std::string directory = "d" + std::to_string(random() % 9) + "/e" + std::to_string(random() % 9);
    std::string text;
    for (std::size_t line = random() % 40; line > 0; --line) {
      text += random() % 30 == 0 ? "needle " + std::to_string(random() % 100) + "\n" : "nothing here\n";
    }
    put(workspace, directory + "/f" + std::to_string(i), text);
  }
  for (int i = 0; i < 5; ++i) {
    REQUIRE(::symlink("x", (workspace / ("d" + std::to_string(i) + "/l")).c_str()) == 0);
    put(workspace, "d" + std::to_string(i) + "/node_modules/x", "needle");
  }
}

}  // namespace

TEST_CASE("contents are searched in the order of the walk") {
  const Workspace workspace;
  for (const char* path : {"b", "A", "a/z", "a-b", "B/c", "_"}) {
    put(workspace, path, "x");
  }
  CHECK(matchesOf(search(workspace, literal("x"))) ==
        Matches{"_:1:x", "a/z:1:x", "A:1:x", "a-b:1:x", "b:1:x", "B/c:1:x"});
  const SearchResult none = search(workspace, literal("X"));
  CHECK(none.matches.empty());
  CHECK(none.scannedFiles == 6);
  CHECK_FALSE(none.truncated);
  CHECK(none.hint.empty());
}

TEST_CASE("a match has its context") {
  const Workspace workspace;
  put(workspace, "a.txt", "l1\nl2\nl3 hit\nl4\nl5\nl6 hit\r\n");
  FileSearch what = literal("hit");
  what.context = 2;
  const SearchResult result = search(workspace, what);
  REQUIRE(result.matches.size() == 2);
  CHECK(result.matches[0].before == Matches{"l1", "l2"});
  CHECK(result.matches[0].after == Matches{"l4", "l5"});
  CHECK(result.matches[1].text == "l6 hit\r");
  CHECK(result.matches[1].after == Matches{""});
}

TEST_CASE("a file is searched as a whole or not at all") {
  const Workspace workspace;
  put(workspace, "bad", "hit\n\xFF");
  put(workspace, "bom", "\xEF\xBB\xBFhit\nx");
  put(workspace, "nul", std::string("a\0hit", 5));
  put(workspace, "utf16", std::string("h\0i\0t\0", 6));
  SearchResult result = search(workspace, expression("^hit"));
  CHECK(matchesOf(result) == Matches{"bom:1:hit"});
  CHECK_FALSE(result.truncated);
  CHECK(matchesOf(search(workspace, literal("hit"))).size() == 2);
  CHECK(search(workspace, literal("\xEF\xBB\xBF")).matches.empty());
  SearchScope scope;
  scope.maxReadBytes = 5;
  result = search(workspace, literal("hit"), scope);
  CHECK(matchesOf(result) == Matches{std::string("nul:1:a\0hit", 11)});
  CHECK(result.scannedFiles == 2);
  CHECK(result.truncated);
}

TEST_CASE("a long line that matches is left out and that is said") {
  const Workspace workspace;
  put(workspace, "a", std::string(9000, 'x') + "\nhit\n");
  FileSearch what = literal("hit");
  what.context = 1;
  SearchResult result = search(workspace, what);
  REQUIRE(result.matches.size() == 1);
  CHECK(result.matches[0].line == 2);
  CHECK(result.matches[0].before == Matches{std::string(9000, 'x')});
  CHECK_FALSE(result.truncated);
  result = search(workspace, literal("x"));
  CHECK(result.matches.empty());
  CHECK(result.truncated);
}

TEST_CASE("what is no regular file is not opened for long") {
  const Workspace workspace;
  put(workspace, "a", "x");
  REQUIRE(::mkfifo((workspace / "p").c_str(), 0600) == 0);
  writeText(workspace.outside + "/secret", "x");
  REQUIRE(::symlink((workspace.outside + "/secret").c_str(), (workspace / "l").c_str()) == 0);
  const UniqueFd big(::open((workspace / "big").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  REQUIRE(::ftruncate(big.get(), off_t{1} << 40) == 0);
  const SearchResult result = search(workspace, literal("x"));
  CHECK(matchesOf(result) == Matches{"a:1:x"});
  CHECK(result.scannedFiles == 1);
  CHECK(result.skippedSymlinks == 1);
  CHECK(result.truncated);
}

TEST_CASE("truncated says that matches were left out, and no other time") {
  const Workspace workspace;
  put(workspace, "a.txt", "x\nx\n");
  SearchScope scope;
  scope.maxResults = 2;
  SearchResult result = search(workspace, literal("x"), scope);
  CHECK(result.matches.size() == 2);
  CHECK_FALSE(result.truncated);
  put(workspace, "b.txt", "-");
  put(workspace, "c.txt", "x");
  put(workspace, "d.txt", "x");
  result = search(workspace, literal("x"), scope);
  CHECK(matchesOf(result) == Matches{"a.txt:1:x", "a.txt:2:x"});
  CHECK(result.truncated);
  CHECK(result.scannedFiles == 3);
  scope.maxResults = 0;
  CHECK(search(workspace, literal("x"), scope).matches.empty());
  CHECK(search(workspace, literal("x"), scope).truncated);
}

TEST_CASE("paths are searched") {
  const Workspace workspace;
  for (const char* path : {"xa", "xb", "xc", "src/d.ts"}) {
    put(workspace, path, "");
  }
  CHECK(matchesOf(search(workspace, inPaths("c/d"))) == Matches{"src/d.ts"});
  SearchScope scope;
  scope.maxResults = 2;
  const SearchResult result = search(workspace, inPaths("x"), scope);
  CHECK(matchesOf(result) == Matches{"xa", "xb"});
  CHECK(result.truncated);
  CHECK(result.scannedFiles == 4);
  FileSearch what = inPaths("^src/.*\\.ts$");
  what.regex = true;
  CHECK(matchesOf(search(workspace, what)) == Matches{"src/d.ts"});
}

TEST_CASE("include decides which files count, and a hint says when it alone left nothing") {
  const Workspace workspace;
  put(workspace, "a.txt", "two");
  put(workspace, "src/c.ts", "two");
  FileSearch what = literal("two");
  what.include = "**/*.ts";
  SearchResult result = search(workspace, what);
  CHECK(matchesOf(result) == Matches{"src/c.ts:1:two"});
  CHECK(result.scannedFiles == 1);
  CHECK(result.hint.empty());
  what.include = "*.ts";
  result = search(workspace, what);
  CHECK(result.scannedFiles == 0);
  CHECK_FALSE(result.hint.empty());
  what.include = "\xFF";
  CHECK(searchFiles(workspace.open(), what, {}, {}).error().kind == ErrorKind::kBadRequest);
  SevenGate gate;
  SearchScope scope;
  scope.gate = &gate;
  put(workspace, "a7", "two");
  what.include = "a7";
  result = search(workspace, what, scope);
  CHECK(result.hint.empty());
  REQUIRE(result.denied.size() == 1);
  CHECK(result.denied[0].path == "a7");
}

TEST_CASE("the result is the same however many threads search, with a gate or not") {
  const Workspace workspace;
  makeTree(workspace);
  SevenGate gate;
  for (PathGate* const asked : {static_cast<PathGate*>(nullptr), static_cast<PathGate*>(&gate)}) {
    for (const std::size_t most : {1U, 10U, 100U, 10000U}) {
      SearchScope scope;
      scope.maxResults = most;
      scope.gate = asked;
      for (FileSearch what : {literal("needle"), expression("needle [0-4]$"), literal("absent")}) {
        what.context = 1;
        const std::string expected = written(search(workspace, what, scope, 1));
        for (int i = 0; i < 5; ++i) {
          REQUIRE(written(search(workspace, what, scope, i % 2 == 0 ? 4 : 2)) == expected);
        }
      }
    }
  }
}

TEST_CASE("matches end before they take more memory than they may") {
  const Workspace workspace;
  std::string text = std::string(200000, 'x') + '\n';
  for (int i = 0; i < 8; ++i) {
    text += "hit\n";
  }
  for (int i = 0; i < 12; ++i) {
    put(workspace, "f" + std::to_string(i), text);
  }
  FileSearch what = literal("hit");
  what.context = 10;
  const SearchResult result = search(workspace, what);
  CHECK(result.matches.size() == 20);
  CHECK(result.truncated);
}

TEST_CASE("a search can be cancelled") {
  const Workspace workspace;
  put(workspace, "a", "x");
  std::stop_source stop;
  stop.request_stop();
  CHECK(searchFiles(workspace.open(), literal("x"), {}, stop.get_token()).error().kind == ErrorKind::kCancelled);
}

TEST_CASE("files and directories that are swapped with links give a search nothing from outside") {
  const Workspace workspace;
  put(workspace, "d/f", "inside");
  put(workspace, "g", "inside");
  put(workspace, "h", "inside");
  writeText(workspace.outside + "/f", "outside");
  REQUIRE(::symlink(workspace.outside.c_str(), (workspace / "l").c_str()) == 0);
  REQUIRE(::symlink((workspace.outside + "/f").c_str(), (workspace / "k").c_str()) == 0);
  std::atomic<bool> done{false};
  std::thread guest([&] {
    while (!done) {
      for (const auto& [one, other] : {std::pair{"d", "l"}, std::pair{"g", "k"}}) {
        static_cast<void>(
            ::renameat2(AT_FDCWD, (workspace / one).c_str(), AT_FDCWD, (workspace / other).c_str(), RENAME_EXCHANGE));
      }
    }
  });
  bool escaped = false;
  std::size_t seen = 0;
  for (int i = 0; i < 2000; ++i) {
    const ContainedDirectory directory = workspace.open();
    const Result<SearchResult> result = searchFilesWithThreads(directory, literal("side"), {}, 2, {});
    REQUIRE(result.has_value());
    for (const SearchMatch& match : result->matches) {
      ++seen;
      escaped = escaped || match.text != "inside";
    }
  }
  done = true;
  guest.join();
  CHECK_FALSE(escaped);
  CHECK(seen >= 2000);
}
