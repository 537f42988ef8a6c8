// Rows about the process itself and about commands.
#include "bench/measure.h"
#include "bench/process_facts.h"
#include "bench/rows.h"

#include <nlohmann/json.hpp>

#include <stdexcept>

namespace stitchkit::bench {

namespace fs = std::filesystem;
using nlohmann::json;

std::string openSession(Sidecar& sidecar) {
  const json created = sidecar.call(
      "backend.create", {{"template", {{"template", "bench"}, {"files", json::object()}}}, {"network", "deny-all"}});
  return created.at("handle");
}

fs::path workspaceOf(const fs::path& stateDirectory, const std::string& sessionId) {
  for (const fs::directory_entry& backend : fs::directory_iterator(stateDirectory)) {
    const fs::path workspace = backend.path() / "sessions" / sessionId / "workspace";
    if (fs::is_directory(workspace)) {
      return workspace;
    }
  }
  throw std::runtime_error("no workspace below the state directory");
}

Row residentRow(Setting& setting) {
  const double mebibytes = static_cast<double>(factsOf(setting.sidecar.pid()).residentBytes) / 1048576;
  return {"resident memory, idle with one session",
          formatNumber(mebibytes, 1, "MiB"),
          "",
          "",
          "<= 12 MiB",
          mebibytes <= 12,
          ""};
}

Row startRow(Setting& setting) {
  const std::string line = requestLine("initialize", json::object());
  const std::string state = setting.home / "start-state";
  const double seconds =
      interleavedMedians(setting.effort.rounds / 5, {[&] {
                           std::unique_ptr<Sidecar> sidecar;
                           const double start = timed([&] {
                             sidecar = std::make_unique<Sidecar>(setting.program, state, Transport::kPipes);
                             sidecar->exchange(line);
                           });
                           sidecar->end();
                           return start;
                         }})[0];
  return {"start to the first answer", formatSeconds(seconds), "", "", "<= 15 ms", seconds <= 0.015, ""};
}

Row runRow(Setting& setting) {
  const std::string line =
      requestLine("session.run", {{"handle", setting.coldSession}, {"command", {{"executable", "/usr/bin/true"}}}});
  std::vector<Measurement> measurements{[&] { return timed([&] { setting.cold.exchange(line); }); },
                                        [&] { return timed([&] { setting.direct.run({"/usr/bin/true"}); }); }};
  if (setting.node != nullptr) {
    measurements.emplace_back([&] { return setting.node->run("true"); });
  }
  const std::vector<double> medians = interleavedMedians(setting.effort.rounds, measurements);
  const double ratio = medians[0] / medians[1];
  return {"session.run /usr/bin/true, --warm 0",
          formatSeconds(medians[0]),
          "bwrap directly: " + formatSeconds(medians[1]),
          formatNumber(ratio, 2, "x"),
          "<= 1.25 x",
          ratio <= 1.25,
          setting.node == nullptr ? "" : formatBaseline(medians[2], medians[0])};
}

}  // namespace stitchkit::bench
