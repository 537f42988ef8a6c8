// The workspace changes while the host thinks, and several edits meet: nothing is done to what nobody has looked at,
// and no edit is lost.
#include "tests/attacks/canary.h"
#include "tests/attacks/tool_client.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <map>

namespace stitchkit::testing {
namespace {

/// Files with a content that tells them apart: file, dir/file, and the same below other/.
constexpr const char* kFiles =
    "rm -rf ./* && mkdir -p dir other/dir && "
    "for f in file dir/file other/file other/dir/file; do printf \"in $f\" > $f; done";

/// One sidecar for many attempts.
struct Asked {
  Asked() : session(sidecar), tools(sidecar, session, {{"authorize", "host"}}) { reset(); }

  void reset() { REQUIRE(session.sh(kFiles).exitCode == 0); }

  /// Makes a call; when the host is asked about it, a guest runs `change`, and then the host agrees.
  Json answerAfter(const std::string& change, const std::string& tool, const Json& input) {
    const auto id = tools.request(tool, input);
    const Json question = sidecar.hostRequest();
    REQUIRE(question.at("method") == "host.authorize");
    const RunOutcome changed = session.sh(change);
    CAPTURE(changed.err);
    REQUIRE(changed.exitCode == 0);
    answerHost(sidecar, question, {{"allowed", true}});
    return sidecar.response(id);
  }

  /// Everything in the workspace with what it holds.
  [[nodiscard]] std::map<std::string, std::string> content() const {
    std::map<std::string, std::string> found;
    const std::string workspace = session.hostWorkspace();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(workspace)) {
      const bool isFile = entry.symlink_status().type() == std::filesystem::file_type::regular;
      found[entry.path().lexically_relative(workspace)] = isFile ? readFile(entry.path()) : "";
    }
    return found;
  }

  [[nodiscard]] bool holds(const std::string& text) const {
    const auto all = content();
    return std::any_of(all.begin(), all.end(),
                       [&](const auto& entry) { return entry.second.find(text) != std::string::npos; });
  }

  Sidecar sidecar;
  Session session;
  ToolClient tools;
};

struct Attempt {
  std::string tool;
  Json input;
};

const Attempt kRead{"read_file", {{"path", "dir/file"}}};
const Attempt kEdit{"edit_file", {{"path", "dir/file"}, {"oldText", "in"}, {"newText", "edited"}}};
const Attempt kWriteNew{"write_file", {{"path", "dir/new"}, {"content", "written"}}};
const Attempt kWriteDeep{"write_file", {{"path", "dir/a/b/new"}, {"content", "written"}}};
const Attempt kOverwrite{"write_file", {{"path", "dir/file"}, {"content", "written"}, {"overwrite", true}}};

TEST_CASE("control: what the host allows is done when nothing changes meanwhile") {
  Asked asked;
  for (const Attempt& attempt : {kRead, kEdit, kWriteNew, kWriteDeep, kOverwrite}) {
    CAPTURE(attempt.tool, attempt.input.dump());
    asked.reset();
    const auto before = asked.content();
    CHECK(asked.answerAfter("true", attempt.tool, attempt.input).contains("result"));
    CHECK((asked.content() == before) == (attempt.tool == "read_file"));
  }
}

TEST_CASE("a directory above that was exchanged while the host was asked is a conflict, and nothing is written") {
  Asked asked;
  const Canary canary;
  for (const std::string& change : std::vector<std::string>{
           "mv dir gone && mv other/dir dir", "mv dir gone && mkdir dir && printf 'in dir/file' > dir/file",
           "mv dir gone && ln -s " + canary.path() + " dir", "mv dir gone && ln -s gone dir", "rm -r dir",
           "mv dir gone"}) {
    for (const Attempt& attempt : {kRead, kEdit, kWriteNew, kWriteDeep, kOverwrite}) {
      asked.reset();
      const Json answer = asked.answerAfter(change, attempt.tool, attempt.input);
      CAPTURE(attempt.tool, attempt.input.dump(), change, answer.dump());
      CHECK(codeOf(answer) == "CONFLICT");
      CHECK(canary.untouched());
      CHECK_FALSE(canary.shownBy(answer.dump()));
      CHECK_FALSE(asked.holds("written"));
      CHECK_FALSE(asked.holds("edited"));
    }
  }
}

TEST_CASE("a file that was exchanged while the host was asked is a conflict, and nothing is written") {
  Asked asked;
  for (const std::string change :
       {"mv dir/file gone && mv other/dir/file dir/file", "cp dir/file copy && mv copy dir/file",
        "mv dir/file gone && ln -s ../gone dir/file", "mv dir/file gone && mkdir dir/file", "rm dir/file",
        "mv dir/file gone && mkfifo dir/file"}) {
    for (const Attempt& attempt : {kRead, kEdit}) {
      asked.reset();
      const Json answer = asked.answerAfter(change, attempt.tool, attempt.input);
      CAPTURE(attempt.tool, change, answer.dump());
      CHECK(codeOf(answer) == "CONFLICT");
      CHECK_FALSE(asked.holds("edited"));
    }
  }
}

TEST_CASE("a file to overwrite that was exchanged or appeared while the host was asked is a conflict") {
  Asked asked;
  for (const std::string change :
       {"mv dir/file gone && mv other/dir/file dir/file", "cp dir/file copy && mv copy dir/file", "rm dir/file"}) {
    asked.reset();
    const Json answer = asked.answerAfter(change, kOverwrite.tool, kOverwrite.input);
    CAPTURE(change, answer.dump());
    CHECK(codeOf(answer) == "CONFLICT");
    CHECK_FALSE(asked.holds("written"));
  }
  asked.reset();
  const Json input{{"path", "dir/new"}, {"content", "written"}, {"overwrite", true}};
  CHECK(codeOf(asked.answerAfter("printf guest > dir/new", "write_file", input)) == "CONFLICT");
  CHECK_FALSE(asked.holds("written"));
}

TEST_CASE("a file that a guest has written to while the host thought about an edit is a conflict") {
  Asked asked;
  const Json answer = asked.answerAfter("printf ' and more' >> dir/file", kEdit.tool, kEdit.input);
  CHECK(codeOf(answer) == "CONFLICT");
  CHECK(asked.content()["dir/file"] == "in dir/file and more");
}

TEST_CASE("a name that was taken while the host was asked is a conflict") {
  Asked asked;
  for (const std::string change :
       {"printf guest > dir/new", "mkdir dir/new", "ln -s nowhere dir/new", "mkfifo dir/new"}) {
    CAPTURE(change);
    asked.reset();
    CHECK(codeOf(asked.answerAfter(change, kWriteNew.tool, kWriteNew.input)) == "CONFLICT");
    CHECK_FALSE(asked.holds("written"));
  }
}

TEST_CASE("a refusal and an error of the host leave everything as it was") {
  Asked asked;
  const auto before = asked.content();
  for (const Json& told :
       {Json{{"result", {{"allowed", false}}}}, Json{{"result", {{"allowed", "true"}}}}, Json{{"result", true}},
        Json{{"result", nullptr}}, Json{{"error", {{"code", 1}, {"message", "no"}}}}}) {
    for (const Attempt& attempt : {kRead, kEdit, kWriteNew, kWriteDeep, kOverwrite}) {
      CAPTURE(attempt.tool, told.dump());
      const auto id = asked.tools.request(attempt.tool, attempt.input);
      Json message = told;
      message["jsonrpc"] = "2.0";
      message["id"] = asked.sidecar.hostRequest().at("id");
      asked.sidecar.sendRaw(message.dump() + "\n");
      CHECK(codeOf(asked.sidecar.response(id)) == "FORBIDDEN");
      CHECK(asked.content() == before);  // no directories either
    }
  }
}

constexpr int kEdits = 64;

std::string slot(int i) {
  return "slot " + std::to_string(100 + i) + ": ";
}

TEST_CASE("of many edits of one file at once none is lost, whatever toolset and name they use") {
  Sidecar sidecar;
  Session session(sidecar);
  ToolClient one(sidecar, session);
  ToolClient other(sidecar, session);
  std::string text;
  for (int i = 0; i < kEdits; ++i) {
    text += slot(i) + "open\n";
  }
  one.call("write_file", {{"path", "dir/file"}, {"content", text}});
  // One file of two names at first; an edit makes them two.
  REQUIRE(session.sh("ln dir/file same").exitCode == 0);
  std::vector<std::int64_t> edits;
  for (int i = 0; i < kEdits; ++i) {
    for (const char* path : {"dir/file", "same"}) {
      ToolClient& tools = i % 2 == 0 ? one : other;
      edits.push_back(
          tools.request("edit_file", {{"path", path}, {"oldText", slot(i) + "open"}, {"newText", slot(i) + "done"}}));
    }
  }
  for (const auto id : edits) {
    const Json answer = sidecar.response(id);
    CAPTURE(answer.dump());
    REQUIRE(answer.contains("result"));
  }
  for (const char* path : {"dir/file", "same"}) {
    const std::string now = one.call("read_file", {{"path", path}}).at("text");
    CAPTURE(path, now);
    CHECK(now.find("open") == std::string::npos);
    CHECK(now.size() == text.size());
  }
}

TEST_CASE("control: reading and writing without edit_file loses a change") {
  Sidecar sidecar;
  Session session(sidecar);
  ToolClient tools(sidecar, session);
  tools.call("write_file", {{"path", "file"}, {"content", "one open, two open"}});
  for (const char* content : {"one done, two open", "one open, two done"}) {  // both had read it before
    tools.call("write_file", {{"path", "file"}, {"content", content}, {"overwrite", true}});
  }
  CHECK(tools.call("read_file", {{"path", "file"}}).at("text") == "one open, two done");
}

TEST_CASE("an edit waits for the one that the host thinks about, and is made on its result") {
  Asked asked;
  const auto first = asked.tools.request("edit_file", {{"path", "file"}, {"oldText", "in"}, {"newText", "first in"}});
  const Json question = asked.sidecar.hostRequest();
  ToolClient free(asked.sidecar, asked.session);
  const auto second = free.request("edit_file", {{"path", "file"}, {"oldText", "in"}, {"newText", "second in"}});
  // Others go on meanwhile.
  CHECK(free.call("read_file", {{"path", "file"}}).at("text") == "in file");
  CHECK(free.call("edit_file", {{"path", "dir/file"}, {"oldText", "in"}, {"newText", "x"}}).at("applied") == true);
  answerHost(asked.sidecar, question, {{"allowed", true}});
  CHECK(asked.sidecar.response(first).contains("result"));
  CHECK(asked.sidecar.response(second).contains("result"));
  CHECK(free.call("read_file", {{"path", "file"}}).at("text") == "first second in file");
}

}  // namespace
}  // namespace stitchkit::testing
