// A sidecar that may have few processes, threads or open files: it works, or says which limit is in the way.
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "tests/support/session.h"

namespace stitchkit::testing {
namespace {

/// What came of one: "works", the reason of an error, or "not started".
std::string outcomeWith(const std::string& limit, const std::string& reason) {
  SidecarOptions options;
  options.arguments = {"--user", userOfItsOwn(), "--cgroup", "none"};
  options.hardLimits = {limit};
  Sidecar sidecar(std::move(options));
  const auto id =
      sidecar.request("backend.create", {{"template", {{"template", "t"}}}, {"network", {{"allow", Json::array()}}}});
  sidecar.closeInput();
  std::string outcome;
  if (const auto line = sidecar.receiveLine()) {
    const Json answer = Json::parse(*line);
    CAPTURE(limit, *line);
    CHECK(answer.at("id") == id);
    if (answer.contains("result")) {
      outcome = "works";
    } else {
      outcome = answer.at("error").at("data").value("reason", "");
      CHECK(outcome == reason);
      CHECK_FALSE(answer.at("error").at("data").value("hint", "").empty());
    }
  }
  const auto end = sidecar.waitForExit();
  REQUIRE(end);
  CAPTURE(limit, outcome, sidecar.stderrText());
  CHECK(end->signal == 0);
  if (outcome.empty()) {
    CHECK(end->code == 1);
    CHECK(sidecar.stderrText().find("cannot-start") != std::string::npos);
    return "not started";
  }
  CHECK(end->code == 0);
  return outcome;
}

TEST_CASE("few processes: not started, refused by the limit's name, or working") {
  std::set<std::string> outcomes;
  for (int most = 1; most <= 32; most += most < 8 ? 1 : 3) {
    outcomes.insert(outcomeWith("--nproc=" + std::to_string(most), "processes-limited"));
  }
  CHECK(outcomes == std::set<std::string>{"not started", "processes-limited", "works"});
}

TEST_CASE("few open files: not started, refused by the limit's name, or working") {
  std::set<std::string> outcomes;
  for (const int most : {6, 10, 20, 40, 63, 64, 72, 80, 96, 128, 256}) {
    outcomes.insert(outcomeWith("--nofile=" + std::to_string(most), "open-files-limited"));
  }
  CHECK(outcomes.count("works") == 1);
  CHECK(outcomes.count("not started") == 1);
}

}  // namespace
}  // namespace stitchkit::testing
