// run_command starts what the host has declared, as it was declared, and nothing else.
#include "tests/attacks/attempts.h"
#include "tests/attacks/tool_client.h"

#include <catch2/catch.hpp>

namespace stitchkit::testing {
namespace {

/// Programs of the workspace that have names of declared ones, and would be seen at work.
constexpr const char* kPlant =
    "mkdir -p bin usr/bin dir && for name in ls env cat bin/ls usr/bin/ls dir/ls; do "
    "printf '#!/bin/sh\\necho shadow\\n' > $name && chmod 755 $name; done";

const Json kPrograms{{"ls", "/bin/ls"}, {"env", "/usr/bin/env"}, {"echo", "/bin/echo"}, {"sh", "/bin/sh"}};

std::string outputOf(ToolClient& tools, const std::string& executable, Json arguments, const std::string& cwd = ".") {
  return tools.call("run_command", {{"executable", executable}, {"args", std::move(arguments)}, {"cwd", cwd}})
      .at("stdout");
}

TEST_CASE("programs in the workspace never stand in for declared ones") {
  Sidecar sidecar;
  Session session(sidecar);
  REQUIRE(session.sh(kPlant).exitCode == 0);
  ToolClient tools(sidecar, session, {{"executables", kPrograms}});
  CHECK(outputOf(tools, "ls", {"-d", "."}) == ".\n");
  CHECK(outputOf(tools, "ls", {"-d", "."}, "dir") == ".\n");
  CHECK(outputOf(tools, "ls", {"-d", "."}, "bin") == ".\n");
  CHECK(outputOf(tools, "env", {"ls", "-d", "."}) == ".\n");  // whoever looks along PATH finds the system's
  CHECK(outputOf(tools, "sh", {"-c", "ls -d ."}) == ".\n");
  // Control: with the workspace on the path it is theirs.
  CHECK(outputOf(tools, "env", {"PATH=/workspace", "ls"}) == "shadow\n");
  ToolClient careless(sidecar, session,
                      {{"executables", kPrograms}, {"environment", {{"PATH", "/workspace:/usr/bin:/bin"}}}});
  CHECK(outputOf(careless, "sh", {"-c", "ls"}) == "shadow\n");
  CHECK(outputOf(careless, "ls", {"-d", "."}) == ".\n");  // declared by its place: no path is searched
}

TEST_CASE("only names that were declared are run") {
  Sidecar sidecar;
  Session session(sidecar);
  REQUIRE(session.sh(kPlant).exitCode == 0);
  ToolClient tools(sidecar, session, {{"executables", {{"ls", "/bin/ls"}}}});
  for (const std::string name : {"./ls", "/workspace/ls", "dir/ls", "/bin/ls", "/usr/bin/../bin/ls", "LS", "ls ", " ls",
                                 "ls && id", "ls;id", "ls $(id)", "ls\n", "cat", "sh", "", "-", "ls\\u0000x"}) {
    CAPTURE(name);
    CHECK(codeOf(tools.answer("run_command", {{"executable", name}})) == "VALIDATION_ERROR");
  }
  CHECK(codeOf(tools.answer("run_command", {{"executable", std::string("ls\0x", 4)}})) == "VALIDATION_ERROR");
  const Json extra{{"executable", "ls"}, {"environment", {{"LD_PRELOAD", "/workspace/evil.so"}}}};
  CHECK(codeOf(tools.answer("run_command", extra)) == "VALIDATION_ERROR");
  for (const std::string path : {"..", "/", "/etc", "dir/../..", "\\", "dir//x"}) {
    CAPTURE(path);
    const std::string code = codeOf(tools.answer("run_command", {{"executable", "ls"}, {"cwd", path}}));
    CHECK((code == "FORBIDDEN" || code == "BAD_REQUEST"));
  }
  CHECK(outputOf(tools, "ls", {"-d", "."}) == ".\n");
}

TEST_CASE("what a shell would act on is plain text") {
  Sidecar sidecar;
  Session session(sidecar);
  ToolClient tools(sidecar, session, {{"executables", kPrograms}});
  const std::vector<std::string> words{
      "a",    "&&",    "touch made", ";",  "$(touch made)", "`touch made`", "|",  ">", "made", "*",
      "~",    "$HOME", "'",          "\"", "a\nb",          "--",           "-n", "",  "\\",   "%s",
      "{a,b}"};
  std::string expected;
  for (const std::string& word : words) {
    expected += (expected.empty() ? "" : " ") + word;
  }
  CHECK(outputOf(tools, "echo", words) == expected + "\n");
  CHECK(session.sh("ls").out == "");
  // Control: a shell acts on them.
  outputOf(tools, "sh", {"-c", "echo a && touch made"});
  CHECK(session.sh("ls").out == "made\n");
}

TEST_CASE("what one toolset declares no other sees, and nobody sees the sidecar's own environment") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  const std::string own = "own" + uniqueDigits();
  const std::string declared = "declared" + uniqueDigits();
  SidecarOptions options;
  options.startAs = startAs;
  options.environment = {"OWN=" + own};
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  ToolClient with(sidecar, session, {{"executables", kPrograms}, {"environment", {{"TOKEN", declared}}}});
  ToolClient without(sidecar, session, {{"executables", kPrograms}});
  CHECK(outputOf(with, "sh", {"-c", "echo $TOKEN"}) == declared + "\n");  // control: there is something to be seen
  // While such a command runs, another looks at all that it can see.
  const std::string marker = "60.0" + uniqueDigits();
  const auto running = with.request("run_command", {{"executable", "sh"}, {"args", {"-c", "exec sleep " + marker}}});
  REQUIRE(eventually([&] { return !guestsAlive(marker).empty(); }));
  const std::string seen =
      outputOf(without, "sh", {"-c", "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'"});
  CAPTURE(seen);
  CHECK(seen.find(declared) == std::string::npos);
  CHECK(seen.find(own) == std::string::npos);
  CHECK(seen.find("PATH=/usr/bin:/bin\n") != std::string::npos);
  CHECK(session.sh("env").out.find(declared) == std::string::npos);
  sidecar.cancel(running);
  CHECK(sidecar.response(running).at("result").at("outcome") == "cancelled");
}

TEST_CASE("what a command leaves in the background ends with it, and holds nothing up") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  SidecarOptions options;
  options.startAs = startAs;
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  const std::string leaver = session.install("leaver");
  ToolClient tools(sidecar, session, {{"executables", {{"leaver", leaver}, {"sh", "/bin/sh"}}}});
  const std::string marker = "60.0" + uniqueDigits();
  const Json left = tools.call("run_command", {{"executable", "leaver"}, {"args", {"3", marker}}}, Milliseconds(15000));
  CHECK(left.at("exitCode") == 3);
  CHECK(left.at("stdout") == "left\n");
  CHECK(guestsAlive(marker).empty());
  CHECK(outputOf(tools, "sh", {"-c", "setsid sleep " + marker + " & echo gone"}) == "gone\n");
  CHECK(guestsAlive(marker).empty());
  // Control: without the sandbox they would live on.
  SpawnOptions plain;
  plain.argv = {hostProgram("leaver"), "0", marker};
  REQUIRE(waitForChild(spawnProgram(plain), Milliseconds(15000)));
  CHECK(guestsAlive(marker).size() == 3);
  CHECK(killAll(marker));
  CHECK(eventually([&] { return commandsOf(sidecar.pid()).empty(); }));
  session.stop();
  CHECK(onlyDescendants({sidecar.pid()}));
}

}  // namespace
}  // namespace stitchkit::testing
