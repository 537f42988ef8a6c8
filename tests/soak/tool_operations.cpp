#include <algorithm>
#include <stdexcept>

#include "tests/attacks/tool_client.h"
#include "tests/soak/operations.h"

namespace stitchkit::soak {
namespace {

constexpr std::size_t kLargestForTools = 250'000;

Json toolParams(const Room& room, Json input) {
  return {{"toolset", room.toolset}, {"input", std::move(input)}};
}

/// A claimed file that tools take; "" for none.
std::string claimForTools(Rig& rig, Room& room) {
  const std::string path = claim(rig, room, true);
  return !path.empty() && room.files[path].size() <= kLargestForTools && !room.files[path].empty() ? path : "";
}

}  // namespace

bool toolWrite(Rig& rig, Room& room) {
  const std::string path = claim(rig, room, false);
  if (path.empty()) {
    return false;
  }
  const bool overwrite = rig.dice().oneIn(2);
  const bool refused = room.files.count(path) != 0 && !overwrite;
  const std::string text = rig.dice().text(rig.dice().below(30'000));
  room.claimed[path].push_back(text);
  rig.begin("write_file", "coding.write_file",
            toolParams(room, {{"path", path}, {"content", text}, {"overwrite", overwrite}}),
            [&room, path, text, refused](const Json& answer) {
              if (refused) {
                requireError(answer, "CONFLICT");
              } else if (resultOf(answer).at("bytes") != text.size()) {
                wrong("bytes written", answer);
              } else {
                room.files[path] = text;
              }
            });
  return true;
}

bool toolEdit(Rig& rig, Room& room) {
  const std::string path = claimForTools(rig, room);
  if (path.empty()) {
    return toolWrite(rig, room);
  }
  const std::string& content = room.files[path];
  // What is replaced stands there once: the file from somewhere on, or all of it.
  std::size_t from = rig.dice().below(content.size());
  from = content.find(content.substr(from)) == from ? from : 0;
  const std::string text = rig.dice().text(rig.dice().below(500));
  const std::string edited = content.substr(0, from) + text;
  room.claimed[path].push_back(edited);
  rig.begin("edit_file", "coding.edit_file",
            toolParams(room, {{"path", path}, {"oldText", content.substr(from)}, {"newText", text}}),
            [&room, path, edited](const Json& answer) {
              if (resultOf(answer).at("bytes") != edited.size()) {
                wrong("bytes after an edit", answer);
              }
              room.files[path] = edited;
            });
  return true;
}

bool toolRead(Rig& rig, Room& room) {
  const std::string path = claimForTools(rig, room);
  if (path.empty()) {
    return toolWrite(rig, room);
  }
  const std::size_t offset = rig.dice().below(room.files[path].size());
  const std::size_t most = 1 + rig.dice().below(5000);
  rig.begin("read_file", "coding.read_file", toolParams(room, {{"path", path}, {"offset", offset}, {"maxBytes", most}}),
            [expected = room.files[path].substr(offset, most)](const Json& answer) {
              if (resultOf(answer).at("text") != expected) {
                wrong("not the window", answer);
              }
            });
  return true;
}

bool toolSearch(Rig& rig, Room& room) {
  const std::string path = claimForTools(rig, room);
  if (path.empty()) {
    return toolWrite(rig, room);
  }
  const std::string line = room.files[path].substr(0, room.files[path].find('\n'));
  if (line.size() < 12) {
    return toolWrite(rig, room);
  }
  const bool regex = rig.dice().oneIn(2);
  rig.begin("search_files", "coding.search_files",
            toolParams(room, {{"query", regex ? "^" + line + "$" : line}, {"regex", regex}, {"include", "**/*.txt"}}),
            [path, line](const Json& answer) {
              const Json& matches = resultOf(answer).at("matches");
              const bool found = std::any_of(matches.begin(), matches.end(), [&](const Json& match) {
                return match.at("path") == path && match.at("line") == 1 && match.at("text") == line;
              });
              if (!found) {
                wrong("not found: " + line + " in " + path, answer);
              }
            });
  return true;
}

bool toolGlob(Rig& rig, Room& room) {
  const std::string path = claimForTools(rig, room);
  if (path.empty()) {
    return toolWrite(rig, room);
  }
  rig.begin("glob", "coding.glob", toolParams(room, {{"pattern", "**/f*.tx?"}}), [path](const Json& answer) {
    const Json& paths = resultOf(answer).at("paths");
    if (std::count(paths.begin(), paths.end(), path) != 1) {
      wrong("not in it: " + path, answer);
    }
  });
  return true;
}

bool toolCommand(Rig& rig, Room& room) {
  if (room.commands >= 5) {
    return false;
  }
  const int exitCode = static_cast<int>(rig.dice().below(126));
  rig.beginCommand(
      room, "run_command", "coding.run_command",
      toolParams(room, {{"executable", "sh"}, {"args", {"-c", "echo $0; exit $0", std::to_string(exitCode)}}}),
      [exitCode](const Json& answer) {
        const Json& result = resultOf(answer);
        if (result.at("exitCode") != exitCode || result.at("stdout") != std::to_string(exitCode) + "\n" ||
            result.at("outcome") != "exited") {
          wrong("not exit code " + std::to_string(exitCode), answer);
        }
      });
  return true;
}

bool toolArtifact(Rig& rig, Room& room) {
  const std::size_t last = 2000 + rig.dice().below(20'000);
  const auto tool = [&](const char* method, Json input) {
    return rig.sidecar().call(method, toolParams(room, std::move(input)));
  };
  const Json made = tool("coding.run_command", {{"executable", "seq"}, {"args", {"1000", std::to_string(last)}}});
  const Json reference = made.at("artifact").at("reference");
  const Json part = tool("coding.read_output", {{"reference", reference}, {"offset", 15}, {"maxBytes", 15}});
  const Json found = tool("coding.search_output", {{"reference", reference}, {"query", std::to_string(last)}});
  if (made.at("exitCode") != 0 || part.at("text") != "1000\n1001\n1002\n" || found.at("matches").size() != 1) {
    wrong("artifact of the numbers up to " + std::to_string(last), {made, part, found});
  }
  rig.soak().did("artifact");
  return true;
}

void askAtOnce(Rig& rig, Room& room, int count) {
  testing::Sidecar& sidecar = rig.sidecar();
  const Json toolset = sidecar.call("coding.create", {{"handle", room.handle()}, {"authorize", "host"}}).at("toolset");
  std::vector<std::int64_t> ids;
  std::vector<Json> questions;
  for (int i = 0; i < count; ++i) {
    ids.push_back(sidecar.request("coding.list_directory", {{"toolset", toolset}, {"input", Json::object()}}));
  }
  for (int i = 0; i < count; ++i) {
    questions.push_back(sidecar.hostRequest());
  }
  for (const Json& question : questions) {
    testing::answerHost(sidecar, question, {{"allowed", true}});
  }
  for (const std::int64_t id : ids) {
    resultOf(sidecar.response(id));
  }
  sidecar.call("coding.delete", {{"toolset", toolset}});
}

bool toolAsksHost(Rig& rig, Room& room) {
  testing::Sidecar& sidecar = rig.sidecar();
  const bool allowed = rig.dice().oneIn(2);
  const Json toolset = sidecar.call("coding.create", {{"handle", room.handle()}, {"authorize", "host"}}).at("toolset");
  const std::int64_t id = sidecar.request(
      "coding.write_file",
      {{"toolset", toolset}, {"input", {{"path", "asked"}, {"content", "asked"}, {"overwrite", true}}}});
  testing::answerHost(sidecar, sidecar.hostRequest(), {{"allowed", allowed}});
  const Json answer = sidecar.response(id);
  if (allowed) {
    resultOf(answer);
  } else {
    requireError(answer, "FORBIDDEN");
  }
  sidecar.call("coding.delete", {{"toolset", toolset}});
  rig.soak().did("ask the host");
  return true;
}

}  // namespace stitchkit::soak
