// A host that dies, goes silent, or answers when it is too late, while tools wait for it: nothing has happened, and
// nobody waits on.
#include "tests/attacks/attempts.h"
#include "tests/attacks/tool_client.h"

#include <signal.h>

#include <catch2/catch.hpp>

#include <filesystem>
#include <set>

namespace stitchkit::testing {
namespace {

constexpr Milliseconds kSoonEnded(15000);

/// One call of each tool, all of which wait for the host to decide.
struct Waiting {
  explicit Waiting(StartAs startAs) : sidecar(optionsOf(startAs)), session(sidecar) {
    session.sh("mkdir dir && printf 'in file' > dir/file");
    ToolClient tools(sidecar, session, {{"authorize", "host"}, {"executables", {{"sh", "/bin/sh"}}}});
    ToolClient paths(sidecar, session, {{"authorizePaths", "host"}});
    calls = {tools.request("read_file", {{"path", "dir/file"}}),
             tools.request("write_file", {{"path", "new/file"}, {"content", "x"}}),
             tools.request("write_file", {{"path", "dir/file"}, {"content", "x"}, {"overwrite", true}}),
             tools.request("edit_file", {{"path", "dir/file"}, {"oldText", "in"}, {"newText", "edited"}}),
             tools.request("list_directory", Json::object()),
             tools.request("glob", {{"pattern", "**"}}),
             tools.request("search_files", {{"query", "in"}}),
             tools.request("run_command",
                           {{"executable", "sh"}, {"args", {"-c", "echo ran > dir/ran; exec sleep " + marker}}}),
             paths.request("write_file", {{"path", "other/file"}, {"content", "x"}}),
             paths.request("glob", {{"pattern", "**"}})};
    while (questions.size() < calls.size()) {
      questions.push_back(sidecar.hostRequest());
    }
  }

  SidecarOptions optionsOf(StartAs startAs) {
    SidecarOptions options;
    options.startAs = startAs;
    options.state = state = std::make_shared<StateDirectory>(startAs);
    return options;
  }

  /// Says yes to everything that was asked, and to what is asked because of that.
  void agree() {
    for (const Json& question : questions) {
      answerHost(sidecar, question, agreementTo(question));
    }
  }

  static Json agreementTo(const Json& question) {
    if (question.at("method") == "host.authorize") {
      return {{"allowed", true}};
    }
    return {{"allowed", std::vector<bool>(question.at("params").at("paths").size(), true)}};
  }

  /// As it was before the calls, seen from the host.
  void checkNothingHappened() {
    const std::string workspace = session.hostWorkspace();
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(workspace)) {
      names.insert(entry.path().lexically_relative(workspace));
    }
    CHECK(names == std::set<std::string>{"dir", "dir/file"});
    CHECK(readFile(workspace + "/dir/file") == "in file");
    CHECK(guestsAlive(marker).empty());
  }

  std::shared_ptr<StateDirectory> state;
  const std::string marker = "60.0" + uniqueDigits();
  Sidecar sidecar;
  Session session;
  std::vector<std::int64_t> calls;
  std::vector<Json> questions;
};

TEST_CASE("control: what waits for the host is done when the host agrees") {
  Waiting now(startModes().front());
  now.agree();
  CHECK(eventually([&] { return !guestsAlive(now.marker).empty(); }));
  CHECK(now.sidecar.response(now.calls[1]).contains("result"));
  const std::string workspace = now.session.hostWorkspace();
  CHECK(readFile(workspace + "/new/file") == "x");
  // The marker stands in the arguments of the shell already before it has written.
  CHECK(eventually([&] { return std::filesystem::exists(workspace + "/dir/ran"); }));
}

TEST_CASE("the host dies while tools wait for it: the sidecar ends at once, and nothing has happened") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  const std::string death = GENERATE("all closed", "output closed", "SIGTERM", "SIGKILL");
  CAPTURE(startAs, death);
  Waiting now(startAs);
  if (death == "SIGTERM" || death == "SIGKILL") {
    now.sidecar.kill(death == "SIGTERM" ? SIGTERM : SIGKILL);
  } else {
    if (death == "all closed") {
      now.sidecar.closeInput();
    }
    now.sidecar.closeOutput();
  }
  const auto ended = now.sidecar.waitForExit(kSoonEnded);
  REQUIRE(ended);
  CHECK(ended->signal == (death == "SIGKILL" ? SIGKILL : 0));
  CHECK(onlyDescendants({}));
  now.checkNothingHappened();
  // The lease is free, and the session is in order.
  SidecarOptions options;
  options.startAs = startAs;
  options.state = now.state;
  Sidecar second(std::move(options));
  const Session again(second, "deny-all", now.session.state());
  CHECK(ToolClient(second, again).call("read_file", {{"path", "dir/file"}}).at("text") == "in file");
}

TEST_CASE("the end of input ends the waiting: every call is refused at once, and nothing has happened") {
  const StartAs startAs = GENERATE(from_range(startModes()));
  CAPTURE(startAs);
  Waiting now(startAs);
  now.sidecar.closeInput();
  for (const auto id : now.calls) {
    const Json answer = now.sidecar.response(id, kSoonEnded);
    CAPTURE(answer.dump());
    CHECK(codeOf(answer) == "FORBIDDEN");
  }
  const auto ended = now.sidecar.waitForExit(kSoonEnded);
  REQUIRE(ended);
  CHECK(ended->code == 0);
  now.checkNothingHappened();
}

TEST_CASE("an answer that comes when nobody waits any more does nothing") {
  const std::string end = GENERATE("cancelled", "stopped");
  CAPTURE(end);
  Waiting now(startModes().front());
  if (end == "stopped") {
    now.session.stop();
  } else {
    for (const auto id : now.calls) {
      now.sidecar.cancel(id);
    }
  }
  for (std::size_t i = 0; i < now.calls.size(); ++i) {
    const Json answer = now.sidecar.response(now.calls[i], kSoonEnded);
    CAPTURE(answer.dump());
    if (end == "stopped") {
      CHECK(codeOf(answer) == "SANDBOX_UNAVAILABLE");
      CHECK(answer.at("/error/data/details/reason"_json_pointer) == "SANDBOX_STOPPED");
    } else if (answer.contains("result")) {
      CHECK(answer["result"].at("outcome") == "cancelled");
    } else {
      CHECK(codeOf(answer) == "CANCELLED");
    }
  }
  now.agree();
  CHECK(now.sidecar.call("rpc.discover").contains("openrpc"));
  now.checkNothingHappened();
}

TEST_CASE("the sidecar is killed while it writes: files are whole, and nothing of ours lies beside them") {
  const std::string size(200000, '-');
  const auto state = std::make_shared<StateDirectory>(startModes().front());
  Json saved;
  for (int round = 0; round < 8; ++round) {
    SidecarOptions options;
    options.startAs = startModes().front();
    options.state = state;
    Sidecar sidecar(options);
    const Session session = saved.is_null() ? Session(sidecar) : Session(sidecar, "deny-all", saved);
    saved = session.state();
    ToolClient tools(sidecar, session);
    tools.answer("write_file", {{"path", "file"}, {"content", "begin" + size + "end"}, {"overwrite", true}});
    std::vector<std::int64_t> calls;
    for (int i = 0; i < 20; ++i) {
      calls.push_back(tools.request("edit_file", {{"path", "file"}, {"oldText", "begin"}, {"newText", "begin"}}));
      calls.push_back(
          tools.request("write_file", {{"path", "made"}, {"content", "begin" + size + "end"}, {"overwrite", true}}));
    }
    sidecar.response(calls[static_cast<std::size_t>(round)]);
    sidecar.kill(SIGKILL);
    REQUIRE(sidecar.waitForExit());
    for (const auto& entry : std::filesystem::directory_iterator(session.hostWorkspace())) {
      const std::string name = entry.path().filename();
      CAPTURE(name);
      CHECK((name == "file" || name == "made"));
      CHECK(readFile(entry.path()) == "begin" + size + "end");
    }
  }
}

}  // namespace
}  // namespace stitchkit::testing
