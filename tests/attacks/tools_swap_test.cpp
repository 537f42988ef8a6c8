// A guest exchanges directories, files and links to the host's files as fast as it can, while the host works with the
// coding tools on paths through them. Not a byte may come from outside, nor go there.
#include "tests/attacks/canary.h"
#include "tests/attacks/tool_client.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <deque>
#include <filesystem>
#include <map>
#include <set>

namespace stitchkit::testing {
namespace {

constexpr int kRounds = 20000;
constexpr std::size_t kInFlight = 24;
constexpr int kLeastCalls = 4000;
constexpr int kCallsForACommand = 50;  // which takes as long as many of the others

/// A sidecar with a session, in whose workspace `dir`, `way/dir` and `file` are exchanged with links to the canary.
class Swapping {
 public:
  explicit Swapping(StartAs startAs) : sidecar(optionsOf(startAs)), session(sidecar) {
    const std::string program = session.install("swap_loop");
    const auto made = session.sh(
        "mkdir -p dir/sub way/dir/sub && for f in file dir/file dir/sub/file way/dir/file way/dir/sub/file; do "
        "printf inside > $f; done && ln -s " +
        canary.path() + " link && ln -s " + canary.relativePath() + " way/link && ln -s " + canary.path() +
        "/file filelink");
    REQUIRE(made.exitCode == 0);
    Json params =
        session.commandParams({program, std::to_string(kRounds), "dir", "link", canary.path(), "way/dir", "way/link",
                               canary.relativePath(), "file", "filelink", canary.path() + "/file"},
                              {{"timeoutMs", 120000}});
    params["stream"] = true;
    process_ = sidecar.call("session.spawn", params).at("process");
  }

  static SidecarOptions optionsOf(StartAs startAs) {
    SidecarOptions options;
    options.startAs = startAs;
    return options;
  }

  /// Whether the guest has done its rounds, as far as answers have been read. It goes on until stop().
  bool roundsAreDone(Milliseconds within = Milliseconds(0)) {
    if (said_.empty()) {
      said_ = sidecar.outputBytes(within);
    }
    return !said_.empty();
  }

  void stop() {
    REQUIRE(roundsAreDone(Milliseconds(60000)));
    CHECK(said_ == "rounds=" + std::to_string(kRounds) + "\n");  // no try of its own failed
    sidecar.call("process.stop", {{"process", process_}});
  }

  const Canary canary;
  Sidecar sidecar;
  Session session;

 private:
  Json process_;
  std::string said_;
};

const std::vector<ToolCall> kCommands{
    {"run_command", {{"executable", "cat"}, {"args", {"file", "sub/file"}}, {"cwd", "dir"}}},
    {"run_command", {{"executable", "touch"}, {"args", {"touched"}}, {"cwd", "way/dir"}}}};

/// The other tools that take a path, through each of the exchanged names.
std::vector<ToolCall> callsThroughSwappedPaths() {
  std::vector<ToolCall> calls;
  for (const std::string path : {"file", "dir/file", "way/dir/file", "dir/sub/file"}) {
    calls.push_back({"read_file", {{"path", path}}});
    calls.push_back({"write_file", {{"path", path}, {"content", "inside"}, {"overwrite", true}}});
    calls.push_back({"edit_file", {{"path", path}, {"oldText", "inside"}, {"newText", "inside"}}});
    calls.push_back({"edit_file", {{"path", path}, {"oldText", "CANARY"}, {"newText", "caught"}}});
  }
  for (const std::string path : {"dir", "way/dir", "way/dir/sub"}) {
    calls.push_back({"write_file", {{"path", path + "/made/deep/file"}, {"content", "inside"}, {"overwrite", true}}});
    calls.push_back({"list_directory", {{"path", path}}});
    calls.push_back({"glob", {{"pattern", "**"}, {"path", path}}});
  }
  calls.push_back({"search_files", {{"query", "CAN[A]RY"}, {"regex", true}, {"context", 2}}});
  calls.push_back({"search_files", {{"query", "s[e]cret"}, {"regex", true}, {"mode", "path"}}});
  return calls;
}

std::set<std::string> namesBelow(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    names.insert(entry.path().filename());
  }
  return names;
}

TEST_CASE("tools on paths that a guest exchanges with links neither read nor write outside") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  Swapping swapping(startAs);
  ToolClient tools(swapping.sidecar, swapping.session,
                   {{"executables", {{"cat", "/bin/cat"}, {"touch", "/usr/bin/touch"}}}});
  const std::vector<ToolCall> calls = callsThroughSwappedPaths();
  const std::set<std::string> ordinary{"", "NOT_FOUND", "BAD_REQUEST", "FORBIDDEN", "CONFLICT"};
  std::map<std::string, int> succeeded;
  std::map<std::string, int> refused;
  std::deque<std::pair<std::int64_t, const ToolCall*>> flying;
  for (std::size_t next = 0; next < kLeastCalls || !swapping.roundsAreDone(); ++next) {
    const bool command = next % kCallsForACommand == 0;
    const ToolCall& call =
        command ? kCommands[next / kCallsForACommand % kCommands.size()] : calls[next % calls.size()];
    flying.emplace_back(tools.request(call.tool, call.input), &call);
    if (flying.size() < kInFlight) {
      continue;
    }
    const auto [id, asked] = flying.front();
    flying.pop_front();
    const Json answer = swapping.sidecar.response(id);
    const std::string text = answer.dump();
    CAPTURE(asked->tool, asked->input.dump(), text);
    REQUIRE_FALSE(swapping.canary.shownBy(text));
    REQUIRE(ordinary.count(codeOf(answer)) == 1);
    ++(codeOf(answer).empty() ? succeeded : refused)[asked->tool];
  }
  for (const auto& [id, asked] : flying) {
    REQUIRE_FALSE(swapping.canary.shownBy(swapping.sidecar.response(id).dump()));
  }
  swapping.stop();
  CHECK(swapping.canary.untouched());
  // The exchange has met the tools, and has not kept them from working.
  for (const char* tool : {"read_file", "write_file", "edit_file", "list_directory", "glob"}) {
    CAPTURE(tool);
    CHECK(succeeded[tool] > 0);
    CHECK(refused[tool] > 0);
  }
  CHECK(succeeded["search_files"] > 0);
  CHECK(succeeded["run_command"] > 0);
  const std::set<std::string> expected{"deep", "dir", "file",      "filelink", "link",
                                       "made", "sub", "swap_loop", "way",      "touched"};
  for (const std::string& name : namesBelow(swapping.session.hostWorkspace())) {
    CAPTURE(name);
    CHECK(expected.count(name) == 1);  // nothing unfinished of ours
  }
  CHECK(swapping.session.run({"/bin/echo", "alive"}).out == "alive\n");
}

TEST_CASE("control: a plain open through the same exchange reads and writes outside") {
  Swapping swapping(startModes().front());
  const std::string workspace = swapping.session.hostWorkspace();
  const auto reachedBy = [&](const std::string& path) {
    return eventually([&] {
      std::string text(64, '\0');
      const UniqueFd file(::open((workspace + path).c_str(), O_RDONLY | O_CLOEXEC));
      const ssize_t got = ::read(file.get(), text.data(), text.size());
      return got > 0 && text.substr(0, static_cast<std::size_t>(got)) == swapping.canary.text();
    });
  };
  CHECK(reachedBy("/dir/file"));
  CHECK(reachedBy("/way/dir/file"));
  CHECK(reachedBy("/file"));
  CHECK(eventually([&] {
    const UniqueFd made(::open((workspace + "/dir/planted").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    return !swapping.canary.untouched();
  }));
  swapping.stop();
}

}  // namespace
}  // namespace stitchkit::testing
