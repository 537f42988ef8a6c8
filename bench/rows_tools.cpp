// Rows about the coding tools: against a program that does the same by hand, and against ripgrep.
#include "bench/measure.h"
#include "bench/rows.h"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>

namespace stitchkit::bench {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* kRipgrep = "/usr/bin/rg";
constexpr std::size_t kReadBytes = 4096;
constexpr std::size_t kEditedBytes = 65536;
constexpr int kDirectories = 90;
constexpr int kFilesEach = 100;
constexpr std::size_t kSearchedBytes = 8192;
constexpr std::string_view kOld = "const answer = 41;";
constexpr std::string_view kNew = "const answer = 42;";

std::string toolLine(const std::string& tool, const std::string& toolset, const json& input) {
  return requestLine("coding." + tool, {{"toolset", toolset}, {"input", input}});
}

/// A session of its own with a toolset that asks nobody.
struct ToolSession {
  std::string handle;
  std::string toolset;
  fs::path workspace;
};

ToolSession openTools(Setting& setting) {
  const json created = setting.sidecar.call(
      "backend.create", {{"template", {{"template", "bench"}, {"files", json::object()}}}, {"network", "deny-all"}});
  const std::string handle = created.at("handle");
  const json made = setting.sidecar.call(
      "coding.create", {{"handle", handle}, {"authorize", "allow"}, {"limits", {{"maxSearchResults", 10000}}}});
  return {handle, made.at("toolset"), workspaceOf(setting.stateDirectory, created.at("session").at("id"))};
}

void writeFile(const fs::path& path, const std::string& content) {
  std::ofstream(path) << content;
}

std::string programText(std::size_t bytes, std::string_view first) {
  std::string text(first);
  for (int line = 0; text.size() < bytes; ++line) {
    text += "\n  let value_" + std::to_string(line) + " = compute(previous, " + std::to_string(line * 37) + ");";
  }
  text.resize(bytes);
  return text;
}

/// What an edit costs a program that does nothing else: reads the file, looks for the text, writes the file.
void editByHand(const fs::path& path, std::string_view from, std::string_view to) {
  static std::array<char, kEditedBytes + 1> buffer;
  const int in = ::open(path.c_str(), O_RDONLY);
  const ssize_t size = ::read(in, buffer.data(), buffer.size());
  ::close(in);
  auto* const found =
      static_cast<char*>(::memmem(buffer.data(), static_cast<std::size_t>(size), from.data(), from.size()));
  if (found == nullptr) {
    throw std::runtime_error("the text to edit is not there");
  }
  std::copy(to.begin(), to.end(), found);
  const int out = ::open(path.c_str(), O_WRONLY | O_TRUNC);
  const ssize_t written = ::write(out, buffer.data(), static_cast<std::size_t>(size));
  ::close(out);
  if (written != size) {
    throw std::runtime_error("the edited file cannot be written");
  }
}

void makeTree(const fs::path& workspace) {
  const std::string content = programText(kSearchedBytes, "// part of a tree");
  for (int directory = 0; directory < kDirectories; ++directory) {
    const fs::path at = workspace / ("part" + std::to_string(directory)) / "src";
    fs::create_directories(at);
    for (int file = 0; file < kFilesEach; ++file) {
      writeFile(at / ("file" + std::to_string(file) + (file % 3 == 0 ? ".ts" : ".c")), content);
    }
  }
}

double ripgrep(std::vector<std::string> arguments, const fs::path& tree) {
  arguments.insert(arguments.begin(), kRipgrep);
  arguments.push_back(tree);
  return timed([&] {
    Child search(arguments, -1, -1, -1);
    if (search.wait() > 1) {  // 1: nothing found
      throw std::runtime_error("ripgrep failed");
    }
  });
}

/// A search in which the host is asked about paths and allows them all.
double askedSearch(Sidecar& sidecar, const std::string& line) {
  return timed([&] {
    sidecar.channel().send(line);
    for (;;) {
      const std::string_view message = sidecar.channel().receive();
      if (message.find("\"host.authorizePaths\"") == std::string_view::npos) {
        expectResult(message);
        return;
      }
      const json asked = json::parse(message);
      const std::vector<bool> all(asked.at("params").at("paths").size(), true);
      sidecar.channel().send(json{{"jsonrpc", "2.0"}, {"id", asked.at("id")}, {"result", {{"allowed", all}}}}.dump() +
                             '\n');
    }
  });
}

Row readFileRow(Setting& setting, const ToolSession& tools) {
  writeFile(tools.workspace / "read.txt", programText(kReadBytes, "// read"));
  const std::string line = toolLine("read_file", tools.toolset, {{"path", "read.txt"}});
  const double seconds = interleavedMedians(setting.effort.rounds * 3,
                                            {[&] { return timed([&] { setting.sidecar.exchange(line); }); }})[0];
  return {"coding.read_file 4 KiB", formatSeconds(seconds), "", "", "<= 150 us", seconds <= 150e-6, ""};
}

Row editFileRow(Setting& setting, const ToolSession& tools) {
  const std::string content = programText(kEditedBytes, kOld);
  writeFile(tools.workspace / "edited.ts", content);
  writeFile(tools.workspace / "by-hand.ts", content);
  const auto line = [&](std::string_view from, std::string_view to) {
    return toolLine("edit_file", tools.toolset, {{"path", "edited.ts"}, {"oldText", from}, {"newText", to}});
  };
  const std::array<std::string, 2> lines{line(kOld, kNew), line(kNew, kOld)};
  const std::array<std::string_view, 2> texts{kOld, kNew};
  std::size_t ours = 0;
  std::size_t theirs = 0;
  const std::vector<double> medians = interleavedMedians(
      setting.effort.rounds,
      {[&] { return timed([&] { setting.sidecar.exchange(lines[ours++ % 2]); }); },
       [&] {
         const std::size_t now = theirs++ % 2;
         return timed([&] { editByHand(tools.workspace / "by-hand.ts", texts[now], texts[1 - now]); });
       }});
  return ratioRow("coding.edit_file, 64 KiB", medians[0], "read, written in C", medians[1], 3);
}

Row againstRipgrep(Setting& setting, const ToolSession& tools, const std::string& what, const std::string& line,
                   const std::vector<std::string>& arguments, double atMost) {
  const std::vector<double> medians = interleavedMedians(
      std::max(7, setting.effort.rounds / 10), {[&] { return timed([&] { setting.sidecar.exchange(line); }); },
                                                [&] { return ripgrep(arguments, tools.workspace); }});
  return ratioRow(what, medians[0], "rg", medians[1], atMost);
}

Row askedSearchRow(Setting& setting, const ToolSession& tools, const std::string& unasked) {
  const json made = setting.sidecar.call(
      "coding.create", {{"handle", tools.handle}, {"authorize", "allow"}, {"authorizePaths", "host"}});
  const std::string asked = toolLine("search_files", made.at("toolset"), {{"query", "no such text anywhere"}});
  const std::vector<double> medians = interleavedMedians(
      std::max(7, setting.effort.rounds / 10), {[&] { return askedSearch(setting.sidecar, asked); },
                                                [&] { return timed([&] { setting.sidecar.exchange(unasked); }); }});
  return ratioRow("the literal, the host asked for paths", medians[0], "without", medians[1], 2);
}

}  // namespace

std::vector<Row> toolRows(Setting& setting) {
  const ToolSession tools = openTools(setting);
  std::vector<Row> rows{readFileRow(setting, tools), editFileRow(setting, tools)};
  if (!fs::exists(kRipgrep)) {
    throw std::runtime_error("there is no /usr/bin/rg to measure against: install ripgrep (./dev bench does)");
  }
  makeTree(tools.workspace);
  const std::string literal = toolLine("search_files", tools.toolset, {{"query", "no such text anywhere"}});
  const std::string expression =
      toolLine("search_files", tools.toolset, {{"query", "[a-z]+_[0-9]{4}X"}, {"regex", true}});
  const std::string glob = toolLine("glob", tools.toolset, {{"pattern", "**/*.ts"}});
  rows.push_back(againstRipgrep(setting, tools, "search_files, literal, 9,000 x 8 KiB", literal,
                                {"-F", "--no-ignore", "-j2", "-e", "no such text anywhere"}, 1.3));
  rows.push_back(againstRipgrep(setting, tools, "search_files, expression, the same", expression,
                                {"--no-ignore", "-j2", "-e", "[a-z]+_[0-9]{4}X"}, 1.5));
  rows.push_back(
      againstRipgrep(setting, tools, "glob **/*.ts, the same", glob, {"--files", "--no-ignore", "-g", "**/*.ts"}, 1.3));
  rows.push_back(askedSearchRow(setting, tools, literal));
  setting.sidecar.call("handle.delete", {{"handle", tools.handle}});
  return rows;
}

}  // namespace stitchkit::bench
