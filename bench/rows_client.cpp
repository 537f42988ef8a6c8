// Rows about the JavaScript client: what a host pays that uses it, against one that starts Bubblewrap itself.
#include "bench/measure.h"
#include "bench/rows.h"

#include <nlohmann/json.hpp>

namespace stitchkit::bench {

using nlohmann::json;

namespace {

constexpr const char* kRun = "client: session.run /usr/bin/true";
constexpr const char* kRead = "client: readBinaryFile 4 KiB";
constexpr const char* kOverhead = "client: what it adds to a call";
constexpr const char* kRunTarget = "<= 0.9 x";
constexpr const char* kReadTarget = "<= 1/20";
constexpr const char* kOverheadTarget = "<= 60 us";

Row runThroughClient(NodeScript& host, int rounds) {
  const std::vector<double> medians =
      interleavedMedians(rounds, {host.running("client run"), host.running("launcher run")});
  const double ratio = medians[0] / medians[1];
  return {kRun,
          formatSeconds(medians[0]),
          "Node launcher: " + formatSeconds(medians[1]),
          formatNumber(ratio, 2, "x"),
          kRunTarget,
          ratio <= 0.9,
          ""};
}

Row readThroughClient(NodeScript& host, int rounds) {
  const std::vector<double> medians =
      interleavedMedians(rounds, {host.running("client read"), host.running("launcher read")});
  const double ratio = medians[1] / medians[0];
  return {kRead,
          formatSeconds(medians[0]),
          "Node launcher, cat: " + formatSeconds(medians[1]),
          "1/" + formatNumber(ratio, 0, ""),
          kReadTarget,
          ratio >= 20,
          ""};
}

Row overheadOfClient(NodeScript& host, int rounds) {
  const std::vector<double> medians =
      interleavedMedians(rounds, {host.running("client read"), host.running("raw read")});
  const double added = medians[0] - medians[1];
  return {kOverhead,
          formatSeconds(medians[0]),
          "raw lines: " + formatSeconds(medians[1]),
          formatSeconds(added),
          kOverheadTarget,
          added <= 60e-6,
          ""};
}

Row notMeasured(const char* what, const char* target) {
  return {what, "", "", "no node", target, std::nullopt, ""};
}

}  // namespace

std::vector<Row> clientRows(Setting& setting) {
  if (setting.nodeProgram.empty()) {
    return {notMeasured(kRun, kRunTarget), notMeasured(kRead, kReadTarget), notMeasured(kOverhead, kOverheadTarget)};
  }
  NodeScript host(setting.nodeProgram, setting.home / "client_host.mjs",
                  json{{"client", (setting.home / "src" / "index.js").string()},
                       {"program", setting.program},
                       {"stateDirectory", (setting.home / "client-state").string()},
                       {"profile", setting.direct.profile()}});
  std::vector<Row> rows{runThroughClient(host, setting.effort.rounds), readThroughClient(host, setting.effort.rounds),
                        overheadOfClient(host, setting.effort.rounds * 10)};
  host.end();
  return rows;
}

}  // namespace stitchkit::bench
