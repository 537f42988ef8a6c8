// security 45: descriptors that walk into the sandbox.
#include "tests/attacks/attempts.h"

#include <fcntl.h>

#include <catch2/catch.hpp>

#include <sstream>

namespace stitchkit::testing {
namespace {

std::set<std::string> numbersIn(const std::string& listing) {
  std::set<std::string> numbers;
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);) {
    numbers.insert(line.substr(0, line.find(' ')));
  }
  return numbers;
}

const std::set<std::string> kStandard{"0", "1", "2"};

TEST_CASE("a guest has its three streams and nothing else, one alone or fifty at once") {
  const Footing footing = GENERATE(from_range(footings()));
  CAPTURE(footing);
  const ScratchFolder folder;
  writeFile(folder / "secret", "descriptor-secret");
  const UniqueFd secret(::open((folder / "secret").c_str(), O_RDONLY | O_CLOEXEC));
  const UniqueFd directory(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  SidecarOptions options = optionsFor(footing);
  options.descriptors = {{secret.get(), 7}, {directory.get(), 40}};
  options.arguments.insert(options.arguments.end(), {"--max-concurrent-commands", "64"});
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  const std::string program = session.install("descriptors");

  const auto alone = session.run({program});
  CAPTURE(alone.out);
  REQUIRE(numbersIn(alone.out) == kStandard);
  REQUIRE(alone.out.find(folder.path()) == std::string::npos);
  const auto read = session.sh("cat <&7");
  CHECK(read.exitCode != 0);
  CHECK(read.out.empty());

  std::vector<std::int64_t> requests;
  for (int i = 0; i < 50; ++i) {
    requests.push_back(sidecar.request("session.run", session.commandParams({program})));
    sidecar.call("session.writeTextFile",
                 {{"handle", session.handle()}, {"path", "f" + std::to_string(i)}, {"text", "x"}});
  }
  for (const auto id : requests) {
    const Json answer = sidecar.response(id);
    CAPTURE(answer.dump());
    REQUIRE(numbersIn(answer.at("result").at("stdout")) == kStandard);
  }
}

TEST_CASE("a command's end is seen while others live: none holds another's pipe") {
  SidecarOptions options;
  options.startAs = GENERATE(from_range(startModes()));
  options.arguments = {"--max-concurrent-commands", "64"};
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  const std::string marker = "60.0" + uniqueDigits();
  for (int i = 0; i < 49; ++i) {
    sidecar.call("session.spawn", session.commandParams({"/bin/sleep", marker}));
  }
  const auto started = std::chrono::steady_clock::now();
  REQUIRE(session.run({"/bin/echo", "hi"}).out == "hi\n");
  REQUIRE(std::chrono::steady_clock::now() - started < std::chrono::seconds(15));
  session.stop();
  REQUIRE(noGuestSoon(marker, Milliseconds(0)));
}

TEST_CASE("control: a plain bwrap passes descriptors on") {
  const ScratchFolder folder;
  writeFile(folder / "secret", "descriptor-secret");
  const UniqueFd secret(::open((folder / "secret").c_str(), O_RDONLY | O_CLOEXEC));
  int ends[2] = {-1, -1};
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  SpawnOptions options;
  options.argv = weakSandboxCommand();
  options.argv.insert(options.argv.end(), {"/bin/sh", "-c", "cat <&7"});
  options.descriptors = {{writing.get(), 1}, {writing.get(), 2}, {secret.get(), 7}};
  options.user = ordinaryUser();
  const pid_t child = spawnProgram(options);
  writing.reset();
  char text[64] = {};
  REQUIRE(::read(reading.get(), text, sizeof text - 1) > 0);
  REQUIRE(std::string(text) == "descriptor-secret");
  REQUIRE(waitForChild(child, Milliseconds(15000))->code == 0);
}

}  // namespace
}  // namespace stitchkit::testing
