// security 48: typing into the terminal that the sidecar was started from.
#include "tests/attacks/attempts.h"

#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <array>

namespace stitchkit::testing {
namespace {

TEST_CASE("a guest of a sidecar on a terminal has none") {
  const Footing footing = GENERATE(from_range(footings()));
  CAPTURE(footing);
  SidecarOptions options = optionsFor(footing);
  options.wiring = Wiring::kTerminal;
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  const std::string program = session.install("terminal_injection");

  const auto tries = session.run({program});
  CAPTURE(tries.out);
  const auto attempts = attemptsOf(tries.out);
  REQUIRE(attempts.size() == 15);
  CHECK(succeeded(attempts) == std::set<std::string>{"setsid"});
  CHECK(session.sh("cat /dev/tty").exitCode != 0);

  // The same from a spawned one, streaming and not.
  for (const bool stream : {false, true}) {
    Json params = session.commandParams({program});
    params["stream"] = stream;
    const Json spawned = sidecar.call("session.spawn", params);
    CHECK(sidecar.call("process.result", {{"process", spawned.at("process")}}).at("exitCode") == 0);
  }
  // What was typed would have been read as the start of the next request.
  CHECK(session.run({"/bin/echo", "still", "clean"}).out == "still clean\n");
  CHECK(sidecar.unclaimedAnswers() == 0);
}

TEST_CASE("control: the same program types into a terminal that it has") {
  int master = -1;
  int slave = -1;
  termios raw{};
  ::cfmakeraw(&raw);
  REQUIRE(::openpty(&master, &slave, nullptr, &raw, nullptr) == 0);
  const UniqueFd ours(master);
  const UniqueFd theirs(slave);
  SpawnOptions options;
  options.argv = {hostProgram("terminal_injection")};
  options.descriptors = {{slave, 0}, {slave, 1}, {slave, 2}};
  options.controllingTerminal = true;  // as root, where we are: a kernel may keep TIOCSTI for it
  const pid_t child = spawnProgram(options);
  std::string output;
  std::array<char, 4096> buffer{};
  const auto takeWhatIsThere = [&] {
    for (pollfd waiter{master, POLLIN, 0}; ::poll(&waiter, 1, 0) == 1;) {
      const ssize_t size = ::read(master, buffer.data(), buffer.size());
      if (size <= 0) {
        return;
      }
      output.append(buffer.data(), static_cast<std::size_t>(size));
    }
  };
  REQUIRE(eventually([&] {
    takeWhatIsThere();
    return waitForChild(child, Milliseconds(0)).has_value();
  }));
  takeWhatIsThere();
  CAPTURE(output);
  const auto names = succeeded(attemptsOf(output));
  CHECK(names.count("isatty-stdin") == 1);
  CHECK(names.count("open-tty") == 1);
  if (::geteuid() == 0) {
    CHECK(names.count("tiocsti-stdin") == 1);
    CHECK(names.count("tiocsti-high-stdin") == 1);
    int typed = 0;
    REQUIRE(::ioctl(slave, FIONREAD, &typed) == 0);
    CHECK(typed > 0);
  }
}

}  // namespace
}  // namespace stitchkit::testing
