// How a guest ends, and what is told of it (PROTOCOL.md, 5; cases/process.md, 20).
#include <catch2/catch.hpp>
#include <vector>

#include "tests/launch/launch_fixture.h"

using namespace stitchkit;
using namespace stitchkit::test;

TEST_CASE("the exit code is the guest's", "[guest]") {
  LaunchFixture fixture;
  for (const int code : {0, 1, 42, 126, 127, 137, 255}) {
    const GuestOutcome outcome = fixture.runShell("exit " + std::to_string(code));
    CHECK(outcome.exitCode == code);
    CHECK(outcome.cause == EndCause::kExited);
  }
}

TEST_CASE("death by a signal is 128 and its number", "[guest]") {
  LaunchFixture fixture;
  CHECK(fixture.runShell("kill -9 $$").exitCode == 137);
  CHECK(fixture.runShell("kill -SEGV $$").exitCode == 139);
  CHECK(fixture.runShell("kill -TERM $$").exitCode == 143);
  CHECK(fixture.runShell("kill -9 $$").cause == EndCause::kExited);
}

TEST_CASE("a program that does not exist is 127 and says so", "[guest]") {
  LaunchFixture fixture;
  for (const char* name : {"/usr/bin/nope", "nope-at-all", "/usr/bin/true/below", ""}) {
    const Result<GuestOutcome> outcome = fixture.run(LaunchFixture::command(name));
    REQUIRE(outcome.has_value());
    CHECK(outcome->exitCode == 127);
    CHECK(outcome->standardError.starts_with("stitchkit-sandbox: " + std::string(name) + ": No"));
  }
  CHECK(fixture.run(LaunchFixture::command("/usr/bin/nope"))->standardError ==
        "stitchkit-sandbox: /usr/bin/nope: No such file or directory\n");
}

TEST_CASE("a program that may not be executed is 126", "[guest]") {
  LaunchFixture fixture;
  writeFile(fixture.workspace() + "/plain", "#!/bin/sh\nexit 0\n", 0644);
  const Result<GuestOutcome> plain = fixture.run(LaunchFixture::command("/workspace/plain"));
  REQUIRE(plain.has_value());
  CHECK(plain->exitCode == 126);
  CHECK(plain->standardError == "stitchkit-sandbox: /workspace/plain: Permission denied\n");
  CHECK(fixture.run(LaunchFixture::command("/usr"))->exitCode == 126);
}

TEST_CASE("a script's interpreter decides", "[guest]") {
  LaunchFixture fixture;
  writeFile(fixture.workspace() + "/lost", "#!/missing\n", 0755);
  writeFile(fixture.workspace() + "/bare", "test \"$#$1$2\" = '2a b' && exit 7\n", 0755);
  writeFile(fixture.workspace() + "/binary", std::string("\0\1\2\3", 4), 0755);
  CHECK(fixture.run(LaunchFixture::command("/workspace/lost"))->exitCode == 127);
  CHECK(fixture.run(LaunchFixture::command("./bare", {"a", " b"}))->exitCode == 7);
  Command byPath = LaunchFixture::command("bare", {"a", " b"});
  byPath.environment.emplace_back("PATH", "/usr/bin:/workspace");
  CHECK(fixture.run(byPath)->exitCode == 7);
  CHECK(fixture.run(LaunchFixture::command("./binary"))->exitCode == 126);
}

TEST_CASE("the words for a program that is not there are no output of its own", "[guest]") {
  LaunchFixture fixture;
  Command missing = LaunchFixture::command("/nope");
  missing.maxOutputBytes = 10;
  const Result<GuestOutcome> cut = fixture.run(missing);
  REQUIRE(cut.has_value());
  CHECK(cut->cause == EndCause::kExited);
  CHECK(cut->exitCode == 127);
  CHECK(cut->standardError == "stitchkit-");
  const Result<GuestOutcome> shortened = fixture.run(LaunchFixture::command("/" + std::string(100000, 'n')));
  REQUIRE(shortened.has_value());
  CHECK(shortened->exitCode == 127);
  CHECK(shortened->standardError.size() < 400);
}

TEST_CASE("a working directory that cannot be entered is a path error", "[guest]") {
  LaunchFixture fixture;
  writeFile(fixture.workspace() + "/file", "");
  const std::vector<std::pair<std::string, std::string>> cases{{"/workspace/missing", "ENOENT"},
                                                               {"/workspace/file", "ENOTDIR"}};
  for (const auto& [directory, name] : cases) {
    Command command = LaunchFixture::command("/usr/bin/true");
    command.workingDirectory = directory;
    const Result<GuestOutcome> outcome = fixture.run(command);
    REQUIRE(!outcome.has_value());
    CHECK(outcome.error().kind == ErrorKind::kPath);
    REQUIRE(outcome.error().details.size() == 1);
    CHECK(std::get<std::string>(outcome.error().details[0].second) == name);
  }
}

TEST_CASE("many and large arguments arrive; too many for the kernel is a limit", "[guest]") {
  LaunchFixture fixture;
  Command command = LaunchFixture::command("/bin/sh", {"-c", "echo $# ${#1}", "sh"});
  command.arguments.emplace_back(100000, 'x');
  command.arguments.insert(command.arguments.end(), 20000, "argument");
  const Result<GuestOutcome> fits = fixture.run(command);
  REQUIRE(fits.has_value());
  CHECK(fits->standardOutput == "20001 100000\n");

  command.arguments.insert(command.arguments.end(), 500000, "argument");
  const Result<GuestOutcome> over = fixture.run(command);
  REQUIRE(!over.has_value());
  CHECK(over.error().kind == ErrorKind::kLimit);

  const Result<GuestOutcome> wide = fixture.run(LaunchFixture::command("/bin/true", {std::string(200000, 'x')}));
  REQUIRE(!wide.has_value());
  CHECK(wide.error().kind == ErrorKind::kLimit);
}

TEST_CASE("onStarted comes once, before the completion", "[guest]") {
  LaunchFixture fixture;
  std::vector<std::string> events;
  GuestOptions options;
  options.onStarted = [&events](Result<void> started) { events.emplace_back(started ? "started" : "failed"); };
  SECTION("a program that runs") {
    CHECK(fixture.run(LaunchFixture::command("/usr/bin/true"), {}, options).has_value());
    CHECK(events == std::vector<std::string>{"started"});
  }
  SECTION("a program that is missing has started as far as it can") {
    CHECK(fixture.run(LaunchFixture::command("/nope"), {}, options).has_value());
    CHECK(events == std::vector<std::string>{"started"});
  }
  SECTION("a directory that is missing") {
    Command command = LaunchFixture::command("/usr/bin/true");
    command.workingDirectory = "/workspace/missing";
    CHECK(!fixture.run(command, {}, options).has_value());
    CHECK(events == std::vector<std::string>{"failed"});
  }
}

TEST_CASE("limits hold for the command", "[guest]") {
  LaunchFixture fixture;
  Command command =
      LaunchFixture::shell("ulimit -n; ulimit -Hn; head -c 70000 /dev/zero > file; echo $?; wc -c < file");
  command.maxFileBytes = 65536;
  command.maxOpenFiles = 50;
  const Result<GuestOutcome> outcome = fixture.run(command);
  REQUIRE(outcome.has_value());
  CHECK(outcome->standardOutput == "50\n50\n153\n65536\n");
}

TEST_CASE("a soft limit of open files leaves the hard one alone", "[guest]") {
  LaunchFixture fixture;
  LaunchProfile profile = fixture.profile();
  Command command = LaunchFixture::shell("ulimit -Sn; ulimit -Hn");
  const std::string hard = fixture.runShell("ulimit -Hn").standardOutput;
  const auto limits = [&](std::uint64_t soft) {
    profile.softOpenFiles = soft;
    const Result<GuestOutcome> outcome = fixture.run(command, fixture.prepared(profile));
    return outcome ? outcome->standardOutput : outcome.error().privateDetail;
  };
  CHECK(limits(0) == fixture.runShell("ulimit -Sn; ulimit -Hn").standardOutput);
  CHECK(limits(77) == "77\n" + hard);
  CHECK(limits(std::uint64_t{1} << 62) == hard + hard);
  command.maxOpenFiles = 50;
  CHECK(limits(77) == "50\n50\n");
}
