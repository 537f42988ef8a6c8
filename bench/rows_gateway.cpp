// Rows about the gateway: what it adds, what it carries, and what hostile clients make it take.
#include "bench/http_servers.h"
#include "bench/measure.h"
#include "bench/process_facts.h"
#include "bench/rows.h"
#include "rpc/base/base64.h"

#include <nlohmann/json.hpp>

#include <ctime>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace stitchkit::bench {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr int kGuests = 16;
constexpr const char* kGatewayTarget = "unix:/run/stitchkit-network.sock";
constexpr const char* kClient = "http_client";
constexpr const char* kHostile = "gateway_peer";
constexpr std::int64_t kMebibyteOfBody = 1048576;

/// A sidecar of its own, which lets so many guests run at once, and sessions in it that have the programs.
class GatewaySidecar {
 public:
  explicit GatewaySidecar(Setting& setting)
      : setting_(setting),
        stateDirectory_(setting.home / "gateway-state"),
        sidecar_(setting.program, stateDirectory_, Transport::kPipes),
        host_("127.0.0.1:" + std::to_string(upstream_.port())) {
    sidecar_.call("initialize", {{"backend", {{"maxConcurrentCommands", kGuests}}}});
  }

  struct Session {
    std::string handle;
    fs::path workspace;
  };
  Session open(const json& network) {
    const json created = sidecar_.call(
        "backend.create", {{"template", {{"template", "bench"}, {"files", json::object()}}}, {"network", network}});
    Session session{created.at("handle"), workspaceOf(stateDirectory_, created.at("session").at("id"))};
    for (const char* program : {kClient, kHostile}) {
      fs::copy_file(setting_.home / program, session.workspace / program);
    }
    return session;
  }
  [[nodiscard]] json allowList() const { return {{"allow", {{{"origin", "http://" + host_}}}}}; }

  /// A guest that runs a program; its process.
  json spawn(const Session& session, const char* program, const std::vector<std::string>& arguments) {
    return sidecar_
        .call("session.spawn",
              {{"handle", session.handle},
               {"command",
                {{"executable", std::string("/workspace/") + program}, {"args", arguments}, {"timeoutMs", 120000}}}})
        .at("process");
  }
  /// What it printed. Throws unless it exits with 0.
  std::string result(const json& process) {
    const json ended = sidecar_.call("process.result", {{"process", process}});
    if (ended.at("exitCode") != 0) {
      throw std::runtime_error("a client of the gateway failed: " + textOf(ended, "stderr") + textOf(ended, "stdout"));
    }
    return textOf(ended, "stdout");
  }

  [[nodiscard]] const fs::path& home() const { return setting_.home; }
  [[nodiscard]] const std::string& host() const { return host_; }
  [[nodiscard]] std::string straight() const { return "tcp:" + std::to_string(upstream_.port()); }
  [[nodiscard]] pid_t pid() const { return sidecar_.pid(); }
  void end() { sidecar_.end(); }

 private:
  static std::string textOf(const json& result, const char* stream) {
    return decodeBase64(result.at(stream).at("base64").get<std::string>()).value();
  }

  Setting& setting_;
  fs::path stateDirectory_;
  CheapUpstream upstream_;
  Sidecar sidecar_;
  std::string host_;
};

std::vector<double> numbersIn(const std::string& text) {
  std::istringstream lines(text);
  std::vector<double> numbers;
  for (double number = 0; lines >> number;) {
    numbers.push_back(number);
  }
  return numbers;
}

/// The median of a hundred requests of one guest, in seconds.
double latencyOf(GatewaySidecar& gateway, const GatewaySidecar::Session& session, const std::string& target) {
  const json process = gateway.spawn(session, kClient, {target, gateway.host(), "latency", "100"});
  return median(numbersIn(gateway.result(process))) / 1e9;
}

/// Answers a second that all guests together get, in the middle of whose work the clock stands.
double rateOf(GatewaySidecar& gateway, const GatewaySidecar::Session& session, const std::string& target, int ms) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  // By then all have connected and had one answer; one that has not says so.
  const std::int64_t start = now.tv_sec * 1000000000LL + now.tv_nsec + 2500000000LL;
  std::vector<json> guests;
  for (int i = 0; i < kGuests; ++i) {
    guests.push_back(
        gateway.spawn(session, kClient, {target, gateway.host(), "load", std::to_string(start), std::to_string(ms)}));
  }
  double answers = 0;
  for (const json& guest : guests) {
    answers += numbersIn(gateway.result(guest)).at(0);
  }
  return answers * 1000 / ms;
}

Row latencyRow(const Effort& effort, GatewaySidecar& gateway) {
  const auto straight = gateway.open("allow-all");
  const auto through = gateway.open(gateway.allowList());
  const std::vector<double> medians = interleavedMedians(
      std::max(5, effort.rounds / 10), {[&] { return latencyOf(gateway, through, kGatewayTarget); },
                                        [&] { return latencyOf(gateway, straight, gateway.straight()); }});
  const double added = medians[0] - medians[1];
  return {"a request of 1 KiB through the gateway",
          formatSeconds(medians[0]),
          "straight to the upstream: " + formatSeconds(medians[1]),
          "+ " + formatSeconds(added),
          "<= + 0.5 ms",
          added <= 0.5e-3,
          ""};
}

Row loadRow(const Effort& effort, GatewaySidecar& gateway) {
  const auto session = gateway.open(gateway.allowList());
  // The workspace's path is longer than a socket's may be.
  const fs::path socket = gateway.home() / "library.sock";
  const LibraryServer library(socket, kGuests);
  fs::create_hard_link(socket, session.workspace / socket.filename());
  const int ms = std::max(200, effort.rounds * 3);
  const std::vector<double> medians =
      interleavedMedians(5, {[&] { return rateOf(gateway, session, kGatewayTarget, ms); },
                             [&] { return rateOf(gateway, session, "unix:/workspace/library.sock", ms); }});
  const double ratio = medians[0] / medians[1];
  return {"16 guests at once, keep-alive, 1 KiB",
          formatNumber(medians[0], 0, "/s"),
          "a bare cpp-httplib server: " + formatNumber(medians[1], 0, "/s"),
          formatNumber(ratio, 2, "x"),
          ">= 0.5 x",
          ratio >= 0.5,
          ""};
}

Row hostileRow(GatewaySidecar& gateway) {
  const auto session = gateway.open(gateway.allowList());
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin() + 1, gateway.host());
    gateway.result(gateway.spawn(session, kHostile, arguments));
  };
  run({"get", "/", "100"});
  forgetPeak(gateway.pid());
  const ProcessFacts start = factsOf(gateway.pid());
  const std::string tooMuch = std::to_string(kMebibyteOfBody + 1);
  const double seconds = timed([&] {
    for (const char* endless : {"line", "header"}) {
      run({endless, std::to_string(200 * kMebibyteOfBody)});
    }
    run({"headers", "10000"});
    for (const char* form : {"declared", "chunked"}) {
      run({"bodies", tooMuch, form, "16"});
      run({"bodies", std::to_string(200 * kMebibyteOfBody), form, "16"});
    }
    run({"dribble", "16"});
  });
  const double growth = static_cast<double>(factsOf(gateway.pid()).peakBytes - start.residentBytes) / 1048576;
  return {"endless headers, slow clients, bodies past the limit",
          formatSeconds(seconds),
          "resident before, at most meanwhile",
          "+ " + formatNumber(growth, 1, "MiB"),
          "<= 8 MiB",
          growth <= 8,
          ""};
}

}  // namespace

std::vector<Row> gatewayRows(Setting& setting) {
  GatewaySidecar gateway(setting);
  std::vector<Row> rows{latencyRow(setting.effort, gateway), loadRow(setting.effort, gateway), hostileRow(gateway)};
  gateway.end();
  return rows;
}

}  // namespace stitchkit::bench
