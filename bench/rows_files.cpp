// Rows about files: small ones against guests, large ones over the wire, templates against cp.
#include "bench/measure.h"
#include "bench/rows.h"
#include "rpc/base/base64.h"

#include <nlohmann/json.hpp>

#include <future>
#include <stdexcept>

namespace stitchkit::bench {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int kPipelined = 20000;
constexpr int kTemplateFiles = 2000;
constexpr std::size_t kSmallBytes = 4096;
constexpr std::size_t kMebibyte = 1024U * 1024;

json command(std::vector<std::string> argv) {
  json result{{"executable", argv.front()}};
  result["args"] = json(std::vector<std::string>(argv.begin() + 1, argv.end()));
  return result;
}

// A guest that is launched for it: what the targets were set against, and nothing is launched beside what is measured.
std::string runLine(const Setting& setting, std::vector<std::string> argv, const json& standardInput = nullptr) {
  json params{{"handle", setting.coldSession}, {"command", command(std::move(argv))}};
  if (!standardInput.is_null()) {
    params["stdin"] = standardInput;
  }
  return requestLine("session.run", params);
}

std::string writeLine(const std::string& session, const std::string& path, const std::string& base64) {
  return requestLine("session.writeBinaryFile", {{"handle", session}, {"path", path}, {"base64", base64}});
}

std::string readLine(const std::string& session, const std::string& path) {
  return requestLine("session.readBinaryFile", {{"handle", session}, {"path", path}});
}

Measurement exchanging(Sidecar& sidecar, std::vector<std::string> lines) {
  return [&sidecar, lines = std::move(lines)] {
    return timed([&] {
      for (const std::string& line : lines) {
        sidecar.exchange(line);
      }
    });
  };
}

// Ours against the same by guests of the sidecar (and by guests of Node), as a row.
Row againstGuests(Setting& setting, const std::string& what, const std::string& guests, double atLeast,
                  std::vector<Measurement> measurements, const std::string& nodeAction) {
  if (setting.node != nullptr) {
    measurements.emplace_back([&setting, nodeAction] { return setting.node->run(nodeAction); });
  }
  const std::vector<double> medians = interleavedMedians(setting.effort.rounds, measurements);
  const double ratio = medians[1] / medians[0];
  return {what,
          formatSeconds(medians[0]),
          guests + ": " + formatSeconds(medians[1]),
          "1/" + formatNumber(ratio, 0, ""),
          "<= 1/" + formatNumber(atLeast, 0, ""),
          ratio >= atLeast,
          setting.node == nullptr ? "" : formatBaseline(medians[2], medians[0])};
}

Row throughputRow(const std::string& what, double seconds) {
  const double megabytesPerSecond = static_cast<double>(kMebibyte) / 1e6 / seconds;
  return {what,          formatSeconds(seconds),    "", formatNumber(megabytesPerSecond, 0, "MB/s"),
          ">= 150 MB/s", megabytesPerSecond >= 150, ""};
}

void addMebibyteRows(const Setting& setting, Sidecar& sidecar, const std::string& session, const std::string& suffix,
                     std::vector<Row>* rows) {
  std::string content(kMebibyte, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) {
    content[i] = static_cast<char>(i * 2654435761U >> 13);
  }
  const std::string base64 = encodeBase64(content);
  const std::string write = writeLine(session, "large", base64);
  const std::string read = readLine(session, "large");
  sidecar.exchange(write);
  if (sidecar.exchange(read).find(base64) == std::string_view::npos) {
    throw std::runtime_error("the sidecar read something else than what was written");
  }
  const std::vector<double> medians =
      interleavedMedians(setting.effort.rounds / 3, {exchanging(sidecar, {write}), exchanging(sidecar, {read})});
  rows->push_back(throughputRow("1 MiB written, " + suffix, medians[0]));
  rows->push_back(throughputRow("1 MiB read, " + suffix, medians[1]));
}

json templateFiles() {
  json files = json::object();
  for (int i = 0; i < kTemplateFiles; ++i) {
    const std::string name = "d" + std::to_string(i % 40) + "/f" + std::to_string(i);
    files[name] = std::string(kSmallBytes - name.size(), 'x') + name;
  }
  return files;
}

// PROTOCOL.md, 4: `<sha256(name)>/templates/<key>/data` below the state directory.
fs::path templateData(const fs::path& stateDirectory, const std::string& key) {
  for (const fs::directory_entry& backend : fs::directory_iterator(stateDirectory)) {
    const fs::path data = backend.path() / "templates" / key / "data";
    if (fs::is_directory(data)) {
      return data;
    }
  }
  throw std::runtime_error("no template data below the state directory");
}

double createOnce(Sidecar& sidecar, const std::string& line) {
  std::string answer;
  const double seconds = timed([&] { answer = sidecar.exchange(line); });
  sidecar.call("handle.delete", {{"handle", json::parse(answer).at("result").at("handle")}});
  return seconds;
}

double copyOnce(const fs::path& from, const fs::path& to) {
  const double seconds = timed([&] {
    Child copy({"/usr/bin/cp", "-r", "--reflink=auto", from, to}, -1, -1, -1);
    if (copy.wait() != 0) {
      throw std::runtime_error("cp failed");
    }
  });
  fs::remove_all(to);
  return seconds;
}

}  // namespace

Row readRow(Setting& setting) {
  const std::string content = encodeBase64(std::string(kSmallBytes, 'x'));
  setting.sidecar.exchange(writeLine(setting.session, "d/f", content));
  setting.cold.exchange(writeLine(setting.coldSession, "d/f", content));
  if (setting.node != nullptr) {
    setting.node->run("write");
  }
  return againstGuests(setting, "session.readBinaryFile 4 KiB", "guest cat", 30,
                       {exchanging(setting.sidecar, {readLine(setting.session, "d/f")}),
                        exchanging(setting.cold, {runLine(setting, {"/usr/bin/cat", "--", "/workspace/d/f"})})},
                       "read");
}

Row writeRow(Setting& setting) {
  const std::string content(kSmallBytes, 'x');
  const std::vector<std::string> guests{
      runLine(setting, {"/usr/bin/mkdir", "-p", "--", "/workspace/d"}),
      runLine(setting, {"/usr/bin/tee", "--", "/workspace/d/f"}, {{"base64", encodeBase64(content)}})};
  return againstGuests(setting, "session.writeBinaryFile 4 KiB", "guests mkdir, tee", 40,
                       {exchanging(setting.sidecar, {writeLine(setting.session, "d/f", encodeBase64(content))}),
                        exchanging(setting.cold, guests)},
                       "write");
}

std::vector<Row> mebibyteRows(Setting& setting) {
  std::vector<Row> rows;
  addMebibyteRows(setting, setting.sidecar, setting.session, "pipes", &rows);
  Sidecar overSockets(setting.program, setting.home / "socket-state", Transport::kSocketPair);
  addMebibyteRows(setting, overSockets, openSession(overSockets), "sockets", &rows);
  overSockets.end();
  return rows;
}

Row pipelineRow(Setting& setting) {
  std::string lines;
  for (int id = 1; id <= kPipelined; ++id) {
    lines += requestLine("session.resolvePath", {{"handle", setting.session}, {"path", "src/main.cpp"}}, id);
  }
  const double seconds = interleavedMedians(
      std::max(5, setting.effort.rounds / 30), {[&] {
        return timed([&] {
          LineChannel& channel = setting.sidecar.channel();
          const auto sent = std::async(std::launch::async, [&] { channel.send(lines); });
          std::string refusal;  // all answers are read before it is reported: the sender waits for its reader
          for (int answers = 0; answers < kPipelined; ++answers) {
            const std::string_view answer = channel.receive();
            if (answer.find("\"result\"") == std::string_view::npos) {
              refusal = answer;
            }
          }
          if (!refusal.empty()) {
            expectResult(refusal);
          }
        });
      }})[0];
  const double rate = kPipelined / seconds;
  return {"20,000 pipelined session.resolvePath",
          formatSeconds(seconds),
          "",
          formatNumber(rate, 0, "/s"),
          ">= 40000 /s",
          rate >= 40000,
          ""};
}

Row templateRow(Setting& setting) {
  const json prewarmed =
      setting.sidecar.call("backend.prewarm", {{"template", "bench-2000"}, {"files", templateFiles()}});
  const std::string key = prewarmed.at("templateKey");
  const fs::path data = templateData(setting.stateDirectory, key);
  const std::string line = requestLine("backend.create", {{"template", key}, {"network", "deny-all"}});
  const std::vector<double> medians = interleavedMedians(
      std::max(5, setting.effort.rounds / 10), {[&] { return createOnce(setting.sidecar, line); },
                                                [&] { return copyOnce(data, setting.stateDirectory / "copied"); }});
  const double ratio = medians[0] / medians[1];
  return {"create, template of 2,000 x 4 KiB",
          formatSeconds(medians[0]),
          "cp -r: " + formatSeconds(medians[1]),
          formatNumber(ratio, 2, "x"),
          "<= 1.5 x",
          ratio <= 1.5,
          ""};
}

}  // namespace stitchkit::bench
