// `stitchkit-sandbox gc` as an operator runs it, beside sidecars at work.
#include "tests/crash/crash_world.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include <atomic>
#include <ctime>
#include <filesystem>
#include <thread>

namespace stitchkit::testing {
namespace {

constexpr std::time_t kDay = 24 * 3600;

struct Place {
  StartAs startAs;
  std::shared_ptr<StateDirectory> state = std::make_shared<StateDirectory>(startAs);

  [[nodiscard]] SidecarOptions options() const {
    SidecarOptions made;
    made.startAs = startAs;
    made.state = state;
    return made;
  }
  [[nodiscard]] ProgramResult gc(std::vector<std::string> arguments) const {
    std::vector<std::string> argv{sidecarBinary(), "gc", "--state-dir", state->path()};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    const bool becomes = startAs == StartAs::kOrdinaryUser && startModes().front() == StartAs::kRoot;
    return runProgram(argv, becomes ? std::optional(kOrdinaryUid) : std::nullopt);
  }
  [[nodiscard]] Json gcJson(std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    const ProgramResult result = gc(std::move(arguments));
    INFO(result.output);
    REQUIRE(result.status.code == 0);
    return Json::parse(result.output);
  }
  void age(const Session& session, std::time_t seconds) const {
    const std::string directory = std::filesystem::path(session.hostWorkspace()).parent_path();
    const timespec then{std::time(nullptr) - seconds, 0};
    const timespec times[2] = {then, then};
    for (const std::string& path : {directory + "/state.json", directory}) {
      REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
    }
  }
};

Json itemOf(const Json& document, const Session& session) {
  for (const Json& item : document.at("items")) {
    if (item.at("name") == session.state().at("sessionId")) {
      return item;
    }
  }
  return {{"outcome", "not listed"}, {"reason", ""}};
}

std::string outcomeOf(const Json& document, const Session& session) {
  const Json item = itemOf(document, session);
  return item.at("outcome").get<std::string>() + ' ' + item.at("reason").get<std::string>();
}

std::string attachCode(Sidecar& sidecar, const Json& state) {
  const Json answer = sidecar.response(sidecar.request(
      "backend.create", {{"template", state.at("templateKey")}, {"network", "deny-all"}, {"state", state}}));
  if (answer.contains("result")) {
    sidecar.call("handle.stop", {{"handle", answer["result"]["handle"]}});
  }
  return answer.value("/error/data/code"_json_pointer, "");
}

}  // namespace

TEST_CASE("gc removes what was not used for so long, and never what somebody has") {
  const Place place{GENERATE(from_range(startModes()))};
  CAPTURE(place.startAs);
  Sidecar sidecar(place.options());
  const Session live(sidecar);
  Session old(sidecar);
  Session recent(sidecar);
  old.stop();
  recent.stop();
  std::optional<Sidecar> dying(std::in_place, place.options());
  const Session left(*dying);
  dying->kill(SIGKILL);
  REQUIRE(dying->waitForExit());
  for (const Session* session : {&live, &std::as_const(old), &left}) {
    place.age(*session, 40 * kDay);
  }

  const Json listed = place.gcJson({});
  CHECK(outcomeOf(listed, old) == "kept no-age");
  CHECK(outcomeOf(listed, live) == "kept owned");
  const Json tried = place.gcJson({"--dry-run", "--older-than", "30d"});
  CHECK(tried.at("dryRun") == true);
  CHECK(tried.at("olderThanSeconds") == 30 * kDay);
  CHECK(outcomeOf(tried, old) == "would-remove unused");
  CHECK(outcomeOf(tried, left) == "kept owner-died");
  CHECK(attachCode(sidecar, left.state()) == "");
  place.age(left, 40 * kDay);

  const ProgramResult result = place.gc({"--older-than", "30d"});
  CAPTURE(result.output);
  CHECK(result.status.code == 0);
  CHECK(result.output.find("removed session " + old.state().at("sessionId").get<std::string>() +
                           " (unused, backend ") != std::string::npos);
  CHECK(attachCode(sidecar, old.state()) == "SANDBOX_STATE_MISMATCH");
  CHECK(attachCode(sidecar, left.state()) == "SANDBOX_STATE_MISMATCH");
  CHECK(attachCode(sidecar, recent.state()) == "");
  CHECK(sidecar.call("session.run", live.commandParams({"/bin/true"})).at("exitCode") == 0);
  sidecar.call("handle.stop", {{"handle", live.handle()}});
  CHECK(attachCode(sidecar, live.state()) == "");
}

TEST_CASE("gc takes the kill of an owner for a use, and removes what it left half done") {
  const Place place{startModes().front()};
  std::optional<Sidecar> dying(std::in_place, place.options());
  const Session left(*dying);
  dying->kill(SIGKILL);
  REQUIRE(dying->waitForExit());
  place.age(left, 40 * kDay);
  const Json first = place.gcJson({"--older-than", "30d"});
  CHECK(outcomeOf(first, left) == "kept owner-died");
  CHECK(first.at("removed") == 1);  // the dead sidecar's staging directory, with its gateway's socket
  CHECK(strays(place.state->path()).empty());
  CHECK(outcomeOf(place.gcJson({"--older-than", "30d"}), left) == "kept used");
}

TEST_CASE("gc says what it does not understand, and makes nothing where there is nothing") {
  const Place place{startModes().front()};
  CHECK(place.gc({"--older-than", "30"}).status.code == 64);
  CHECK(place.gc({"--older-than", "-1d"}).status.code == 64);
  CHECK(place.gc({"--older-than", "99999999999d"}).status.code == 64);
  CHECK(place.gc({"--serial"}).status.code == 64);
  CHECK(place.gc({"--help"}).output.find("--older-than") != std::string::npos);
  const ProgramResult nothing = place.gc({});
  CHECK(nothing.status.code == 0);
  CHECK(nothing.output == "stitchkit-sandbox: warning: note message=\"there is no " + place.state->path() +
                              ", and so nothing to remove\"\n");
  CHECK_FALSE(std::filesystem::exists(place.state->path()));
  writeFile(place.state->path(), "a file");
  CHECK(place.gc({}).status.code == 1);
}

TEST_CASE("gc names the path that it could not remove, and why in words") {
  const Place place{StartAs::kOrdinaryUser};
  const std::string support = place.state->path() + "/support";
  const auto asUser = [](std::vector<std::string> argv) {
    return runProgram(std::move(argv),
                      startModes().front() == StartAs::kRoot ? std::optional(kOrdinaryUid) : std::nullopt)
        .status.code;
  };
  REQUIRE(asUser({"/bin/mkdir", "-p", support + "/.new-left"}) == 0);
  REQUIRE(asUser({"/bin/chmod", "0500", support}) == 0);
  const ProgramResult result = place.gc({});
  REQUIRE(asUser({"/bin/chmod", "0700", support}) == 0);
  CAPTURE(result.output);
  CHECK(result.status.code == 1);
  CHECK(result.output.find("failed leftover .new-left (failed)\n") != std::string::npos);
  CHECK(result.output.find("remove " + support + "/.new-left: Permission denied\"\n") != std::string::npos);
  CHECK(result.output.find("workspace") == std::string::npos);
  CHECK(result.output.find("()") == std::string::npos);
}

TEST_CASE("gc again and again beside a sidecar never loses a session that has an owner") {
  const Place place{startModes().front()};
  Sidecar sidecar(place.options());
  std::atomic<bool> done{false};
  std::atomic<int> runs{0};
  std::atomic<int> failures{0};
  std::jthread collector([&] {
    while (!done) {
      failures += place.gc({"--older-than", "0s"}).status.code == 0 ? 0 : 1;
      ++runs;
    }
  });
  int kept = 0;
  std::vector<std::string> lost;
  for (int round = 0; round < 15 || (runs < 5 && round < 1000); ++round) {
    Session session(sidecar);
    const Json file{{"handle", session.handle()}, {"path", "f"}};
    Json text = file;
    text["text"] = "mine";
    sidecar.call("session.writeTextFile", text);
    session.stop();
    // Nobody's now: it may go.
    const Json answer = sidecar.response(sidecar.request(
        "backend.create",
        {{"template", session.state().at("templateKey")}, {"network", "deny-all"}, {"state", session.state()}}));
    const std::string code = answer.value("/error/data/code"_json_pointer, "");
    if (answer.contains("result")) {
      ++kept;
      const Session again = Session::adopt(sidecar, answer["result"]);
      if (sidecar.call("session.run", again.commandParams({"/bin/cat", "f"})).at("stdout") != "mine") {
        lost.emplace_back("its file");
      }
      sidecar.call("handle.delete", {{"handle", again.handle()}});
    } else if (code != "SANDBOX_BUSY" && code != "SANDBOX_STATE_MISMATCH") {
      lost.push_back(answer.dump());
    }
  }
  done = true;
  collector.join();
  CAPTURE(kept, runs);
  CHECK(lost == std::vector<std::string>());
  CHECK(failures == 0);
  CHECK(kept > 0);
}

}  // namespace stitchkit::testing
