// What the kill tests stand on can fail: a writer that is not atomic is caught, one that is passes, and what does not
// belong into a state directory is seen.
#include "tests/crash/crash_world.h"
#include "tests/crash/step_tracer.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <cstdio>
#include <filesystem>
#include <functional>

namespace stitchkit::testing {
namespace {

const std::string kOld(5000, 'o');
const std::string kNew(5000, 'n');

/// In two halves.
void writeInto(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const std::size_t half = kNew.size() / 2;
  static_cast<void>(!::write(file, kNew.data(), half));
  static_cast<void>(!::write(file, kNew.data() + half, kNew.size() - half));
  ::close(file);
}

/// Runs `work` in a process of its own that is killed in front of its step `step`. Whether it came to that.
bool killedAt(const std::string& folder, unsigned step, const std::function<void()>& work) {
  int begin[2] = {-1, -1};
  REQUIRE(::pipe2(begin, O_CLOEXEC) == 0);
  const pid_t writer = ::fork();
  if (writer == 0) {
    char go = 0;
    ::close(begin[1]);
    static_cast<void>(!::read(begin[0], &go, 1));
    work();
    ::_exit(0);
  }
  ::close(begin[0]);
  StepTracer tracer(writer, folder, step);
  REQUIRE(::write(begin[1], "g", 1) == 1);
  ::close(begin[1]);
  REQUIRE(waitForChild(writer, Milliseconds(15000)));
  tracer.finish();
  return tracer.killed();
}

/// How often the file was neither old nor new, and how often it was killed.
std::pair<int, int> tornAndKills(const std::function<void(const std::string&)>& write) {
  const ScratchFolder folder;
  const std::string path = folder / "f";
  int torn = 0;
  int kills = 0;
  for (unsigned step = 1;; ++step) {
    writeFile(path, kOld);
    if (!killedAt(folder.path(), step, [&] { write(path); })) {
      return {torn, kills};
    }
    ++kills;
    const std::string text = readFile(path);
    torn += text == kOld || text == kNew ? 0 : 1;
  }
}

}  // namespace

TEST_CASE("a writer that is not atomic is caught at each step that tears the file") {
  const auto [torn, kills] = tornAndKills(writeInto);
  CHECK(kills == 3);
  CHECK(torn == 2);  // emptied, and half written
}

TEST_CASE("a writer that is atomic is never caught") {
  const auto [torn, kills] = tornAndKills([](const std::string& path) {
    writeInto(path + ".new");
    std::rename((path + ".new").c_str(), path.c_str());
  });
  CHECK(kills == 4);
  CHECK(torn == 0);
}

TEST_CASE("what does not belong into a state directory is seen") {
  const ScratchFolder folder;
  const std::string hex(64, 'a');
  const std::string session = folder / hex + "/sessions/" + hex;
  std::filesystem::create_directories(session + "/workspace");
  std::filesystem::create_directories(session + "/artifacts");
  std::filesystem::create_directories(folder / hex + "/templates/" + hex + "/data");
  std::filesystem::create_directories(folder / hex + "/staging");
  std::filesystem::create_directories(folder / "support/" + hex);
  writeFile(session + "/state.json", "{}");
  writeFile(session + "/artifacts/1", "");
  CHECK(strays(folder.path()).empty());
  for (const std::string& stray :
       {folder / "x", folder / hex + "/x", folder / hex + "/staging/" + hex, folder / hex + "/templates/x",
        folder / hex + "/templates/" + hex + "/x", folder / hex + "/sessions/x", session + "/lease",
        session + "/artifacts/unfinished", folder / "support/.new-x"}) {
    CAPTURE(stray);
    writeFile(stray, "");
    CHECK(strays(folder.path()) == std::vector<std::string>{stray});
    std::filesystem::remove(stray);
  }
}

}  // namespace stitchkit::testing
