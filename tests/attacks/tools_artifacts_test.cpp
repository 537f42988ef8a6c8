// Long output that the sidecar keeps: out of the guests' reach, bounded, whole or not there, and gone with its session.
#include "tests/attacks/tool_client.h"

#include <signal.h>

#include <catch2/catch.hpp>

#include <filesystem>

namespace stitchkit::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostBytes = 64U * 1024 * 1024;
constexpr std::size_t kLarge = 40UL * 1024 * 1024;

fs::path artifactsOf(const Session& session) {
  return fs::path(session.hostWorkspace()).parent_path() / "artifacts";
}

std::uintmax_t bytesIn(const fs::path& folder) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    bytes += entry.file_size();
  }
  return bytes;
}

/// `maxArtifactBytes` of output is more than a command may answer.
Json rules(std::size_t maxArtifactBytes) {
  return {{"executables", {{"yes", "/usr/bin/yes"}, {"seq", "/usr/bin/seq"}, {"sh", "/bin/sh"}}},
          {"limits", {{"maxShellOutputBytes", 1024}, {"maxArtifactBytes", maxArtifactBytes}}}};
}

TEST_CASE("a guest finds no artifact, neither by name nor by content nor by its place on the host") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  SidecarOptions options;
  options.startAs = startAs;
  Sidecar sidecar(std::move(options));
  Session session(sidecar);
  ToolClient tools(sidecar, session, rules(65536));
  // In two parts, so that the text stands in no command line.
  const std::string half = uniqueDigits();
  const Json made =
      tools.call("run_command",
                 {{"executable", "sh"}, {"args", {"-c", "for i in $(seq 200); do echo kept-$1$1; done", "sh", half}}});
  const std::string reference = made.at("artifact").at("reference");
  const fs::path onHost = artifactsOf(session) / "1";
  CHECK(readFile(onHost).find("kept-" + half + half) != std::string::npos);  // control: the host sees it
  CHECK(tools.call("search_output", {{"reference", reference}, {"query", half + half}}).at("matches").size() == 20);

  const std::string place = onHost.parent_path();
  for (const std::string script :
       {"find / -name artifacts -o -name lease -o -name state.json 2>/dev/null | grep -v ^/usr/",
        "find / \\( -path /usr -o -path /proc -o -path /sys -o -path /dev \\) -prune -o -type f -print0 2>/dev/null | "
        "xargs -0 grep -l \"kept-$1$1\" 2>/dev/null",
        "ls -d /workspace/../artifacts /workspace/../../artifacts ../artifacts 2>/dev/null",
        "cat $2/1 /proc/1/root/$2/1 /proc/1/cwd/../artifacts/1 /proc/self/cwd/../artifacts/1 2>/dev/null",
        "ln -s ../artifacts up; ln -s $2 there; cat up/1 there/1 2>/dev/null",
        "for fd in /proc/[0-9]*/fd/*; do cat $fd/../artifacts/1 $fd/artifacts/1 $fd/1 2>/dev/null; done"}) {
    CAPTURE(script);
    CHECK(session.run({"/bin/sh", "-c", script, "sh", half, place}).out == "");
  }
  // Nor through tools, by the links that it has planted.
  for (const std::string path : {"up/1", "there/1", "../artifacts/1", "/workspace/../artifacts/1"}) {
    const Json answer = tools.answer("read_file", {{"path", path}});
    CAPTURE(path, answer.dump());
    CHECK(answer.contains("error"));
    CHECK(answer.dump().find(half + half) == std::string::npos);
  }
  for (const std::string other :
       {"artifact-01", "artifact-0", "artifact-../1", "../1", "artifact-1/", "1", "", "artifact-1\n",
        "artifact-unfinished", "artifact-latest", "artifact-../../state.json", "artifact-18446744073709551617"}) {
    CAPTURE(other);
    const std::string code = codeOf(tools.answer("read_output", {{"reference", other}}));
    CHECK((code == "SPILL_REFERENCE_UNKNOWN" || code == "VALIDATION_ERROR"));
  }
  // Another session's toolset does not have it either.
  Session stranger(sidecar);
  ToolClient strange(sidecar, stranger, rules(65536));
  CHECK(codeOf(strange.answer("read_output", {{"reference", reference}})) == "SPILL_REFERENCE_UNKNOWN");
}

TEST_CASE("artifacts of a session are bounded, the oldest go first, and all go with the session") {
  Sidecar sidecar;
  Session session(sidecar);
  ToolClient tools(sidecar, session, rules(4194304));
  std::vector<std::string> references;
  for (int i = 0; i < 20; ++i) {
    const Json made = tools.call("run_command", {{"executable", "yes"}, {"args", {"line" + std::to_string(i)}}});
    CHECK(made.at("outcome") == "output-limit");
    CHECK(made.at("artifact").at("bytes") == 4194304);
    references.push_back(made.at("artifact").at("reference"));
    REQUIRE(bytesIn(artifactsOf(session)) <= kMostBytes);
  }
  CHECK(bytesIn(artifactsOf(session)) > kMostBytes / 2);
  const Json last = tools.call("read_output", {{"reference", references.back()}, {"offset", 15}, {"maxBytes", 7}});
  CHECK(last.at("text") == "line19\n");
  int unknown = 0;
  for (const std::string& reference : references) {
    const Json answer = tools.answer("read_output", {{"reference", reference}, {"maxBytes", 100}});
    if (codeOf(answer) == "SPILL_REFERENCE_UNKNOWN") {
      CHECK(reference == references[static_cast<std::size_t>(unknown)]);  // none that is younger than one that is there
      ++unknown;
    } else {
      CHECK(answer.contains("result"));
    }
  }
  CHECK(unknown == 5);  // 15 of 4 MiB and a little are below 64 MiB
  CHECK(codeOf(tools.answer("search_output", {{"reference", references.front()}, {"query", "line"}})) ==
        "SPILL_REFERENCE_UNKNOWN");
  const fs::path folder = artifactsOf(session).parent_path();
  sidecar.call("handle.delete", {{"handle", session.handle()}});
  CHECK_FALSE(fs::exists(folder));
}

// Bytes of what is becoming an artifact, beside the session; 0: nothing is.
std::uintmax_t halfWritten(const Session& session) {
  const fs::path staging = artifactsOf(session).parent_path().parent_path().parent_path() / "staging";
  std::error_code failure;
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(staging, failure)) {
    if (entry.is_regular_file(failure)) {
      const std::uintmax_t size = entry.file_size(failure);
      bytes = std::max(bytes, failure ? 0 : size);
    }
  }
  return bytes;
}

TEST_CASE("of an artifact that a killed sidecar was writing nothing can be read") {
  const auto state = std::make_shared<StateDirectory>(startModes().front());
  SidecarOptions options;
  options.startAs = startModes().front();
  options.state = state;
  Json saved;
  bool cutShort = false;
  // The kill has to meet the writing, of which there is a trace on disk then.
  for (int attempt = 0; attempt < 20 && !cutShort; ++attempt) {
    Sidecar sidecar(options);
    const Session session = saved.is_null() ? Session(sidecar) : Session(sidecar, "deny-all", saved);
    saved = session.state();
    ToolClient tools(sidecar, session, rules(kLarge));
    tools.request("run_command", {{"executable", "yes"}, {"args", {"line"}}});
    // Shorter than forever at first: it may have come and gone between two looks.
    eventually([&] { return halfWritten(session) != 0; }, Milliseconds(1000 * (attempt + 1)));
    sidecar.kill(SIGKILL);
    REQUIRE(sidecar.waitForExit());
    const std::uintmax_t written = halfWritten(session);
    cutShort = written != 0 && written < kLarge;
  }
  REQUIRE(cutShort);  // control: there is half an artifact
  Sidecar sidecar(options);
  const Session session(sidecar, "deny-all", saved);
  ToolClient tools(sidecar, session, rules(kLarge));
  for (const auto& entry : fs::directory_iterator(artifactsOf(session))) {
    const std::string name = entry.path().filename();
    CAPTURE(name);
    const Json answer = tools.answer("read_output", {{"reference", "artifact-" + name}, {"maxBytes", 10}});
    if (name == "latest") {
      CHECK(codeOf(answer) == "SPILL_REFERENCE_UNKNOWN");
    } else {
      CHECK(answer.at("result").at("totalBytes") == kLarge);
    }
  }
  const Json next = tools.call("run_command", {{"executable", "seq"}, {"args", {"1000"}}});
  const Json read = tools.call("read_output", {{"reference", next.at("artifact").at("reference")}, {"offset", 15}});
  CHECK(read.at("text").get<std::string>().starts_with("1\n2\n3\n"));
  CHECK_FALSE(fs::exists(artifactsOf(session) / "unfinished"));
}

}  // namespace
}  // namespace stitchkit::testing
