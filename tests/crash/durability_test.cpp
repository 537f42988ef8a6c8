// What is forced to the disk, and when: content before names, names before answers, and by default nothing.
#include "tests/crash/crash_world.h"
#include "tests/crash/step_tracer.h"

#include "tests/attacks/tool_client.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <utility>

namespace stitchkit::testing {
namespace {

using Steps = std::vector<std::string>;
/// A system call, and how the paths of it end.
using Wanted = std::vector<std::pair<std::string, std::string>>;

bool isForcing(const std::string& step) {
  return step.starts_with("fsync ") || step.starts_with("syncfs ");
}

bool isForcingOfDirectory(const std::string& step) {
  return step.starts_with("fsync ") && step.ends_with('/');
}

/// Each of them after the one before, whatever lies between. What is missing; "" for nothing.
std::string missingOf(const Steps& steps, const Wanted& wanted) {
  auto at = steps.begin();
  for (const auto& [call, end] : wanted) {
    at = std::find_if(at, steps.end(), [&call = call, &end = end](const std::string& step) {
      return step.starts_with(call + ' ') && step.ends_with(end);
    });
    if (at == steps.end()) {
      return call + " ..." + end;
    }
    ++at;
  }
  return "";
}

class Traced {
 public:
  explicit Traced(const std::string& level) : sidecar_(optionsFor(level)) { sidecar_.call("rpc.discover"); }

  Steps stepsOf(const std::function<void(Sidecar&)>& work) {
    StepTracer tracer(sidecar_.pid(), sidecar_.state()->path(), 0);
    work(sidecar_);
    return tracer.finish();
  }
  Sidecar& sidecar() { return sidecar_; }

 private:
  static SidecarOptions optionsFor(const std::string& level) {
    SidecarOptions options;
    options.startAs = startModes().front();
    options.state = std::make_shared<StateDirectory>(options.startAs);
    if (!level.empty()) {
      options.arguments = {"--durability", level};
    }
    return options;
  }

  Sidecar sidecar_;
};

/// The steps of each operation, in a sidecar of one level.
struct Recorded {
  std::string key;
  std::string session;
  Steps prewarm;
  Steps create;
  Steps write;
  Steps edit;
  Steps artifact;
  Steps removal;
  Steps deletion;

  [[nodiscard]] Steps all() const {
    Steps steps;
    for (const Steps* one : {&prewarm, &create, &write, &edit, &artifact, &removal, &deletion}) {
      steps.insert(steps.end(), one->begin(), one->end());
    }
    return steps;
  }
};

Recorded record(const std::string& level) {
  Traced traced(level);
  Recorded recorded;
  Json made;
  recorded.prewarm = traced.stepsOf([&](Sidecar& sidecar) {
    made = sidecar.call("backend.prewarm", {{"template", "t"}, {"files", templateFiles("1")}});
  });
  recorded.key = made.at("templateKey");
  Json created;
  recorded.create = traced.stepsOf([&](Sidecar& sidecar) {
    created = sidecar.call("backend.create", {{"template", recorded.key}, {"network", "deny-all"}});
  });
  recorded.session = created.at("state").at("sessionId");
  const Session session = Session::adopt(traced.sidecar(), created);
  ToolClient tools(traced.sidecar(), session,
                   {{"executables", {{"sh", "/bin/sh"}}}, {"limits", {{"maxShellOutputBytes", 64}}}});
  recorded.write = traced.stepsOf([&](Sidecar& sidecar) {
    sidecar.call("session.writeTextFile", {{"handle", session.handle()}, {"path", "new/dir/f"}, {"text", "one"}});
  });
  recorded.edit = traced.stepsOf([&](Sidecar&) {
    tools.call("edit_file", {{"path", "a.txt"}, {"oldText", "a"}, {"newText", "b"}});
  });
  recorded.artifact = traced.stepsOf([&](Sidecar&) {
    tools.call("run_command", {{"executable", "sh"}, {"args", {"-c", "seq 100"}}});
  });
  recorded.removal = traced.stepsOf([&](Sidecar& sidecar) {
    sidecar.call("session.removePath", {{"handle", session.handle()}, {"path", "d"}});
  });
  recorded.deletion = traced.stepsOf([&](Sidecar& sidecar) {
    sidecar.call("handle.delete", {{"handle", session.handle()}});
  });
  return recorded;
}

void checkContentComesFirst(const Recorded& recorded) {
  const std::string ready = "/template/ready";
  CHECK(missingOf(recorded.prewarm, {{"write", ready}, {"syncfs", ""}, {"rename", "/templates/" + recorded.key}}) ==
        "");
  CHECK(missingOf(recorded.create,
                  {{"write", "/session/state.json"}, {"syncfs", ""}, {"rename", "/sessions/" + recorded.session}}) ==
        "");
  for (const auto& [steps, target] :
       {std::pair(&recorded.write, "/workspace/new/dir/f"), std::pair(&recorded.edit, "/workspace/a.txt"),
        std::pair(&recorded.artifact, "/artifacts/1")}) {
    CAPTURE(target);
    const auto renamed = std::find_if(steps->begin(), steps->end(), [target = target](const std::string& step) {
      return step.starts_with("rename ") && step.ends_with(target);
    });
    REQUIRE(renamed != steps->end());
    const std::string staged = renamed->substr(7, renamed->find(" -> ") - 7);
    CHECK(missingOf(*steps, {{"write", staged}, {"chmod", staged}, {"fsync", staged}, {"rename", target}}) == "");
  }
}

}  // namespace

TEST_CASE("by default nothing is forced to the disk, and the same by name") {
  const std::string level = GENERATE("", "process");
  const Recorded recorded = record(level);
  const Steps steps = recorded.all();
  // Control: what would be forced was seen.
  CHECK(missingOf(recorded.write, {{"write", ""}, {"rename", "/workspace/new/dir/f"}}) == "");
  CHECK(std::count_if(steps.begin(), steps.end(), isForcing) == 0);
}

TEST_CASE("--durability file: content is on the disk before it gets its name, and no directory is forced there") {
  const Recorded recorded = record("file");
  checkContentComesFirst(recorded);
  const Steps steps = recorded.all();
  CHECK(std::count_if(steps.begin(), steps.end(), isForcingOfDirectory) == 0);
}

TEST_CASE("--durability directory: then the names, outermost first, and what is deleted has no name before it goes") {
  const Recorded recorded = record("directory");
  checkContentComesFirst(recorded);
  CHECK(missingOf(recorded.prewarm, {{"rename", "/templates/" + recorded.key}, {"fsync", "/templates/"}}) == "");
  CHECK(missingOf(recorded.create, {{"rename", "/sessions/" + recorded.session}, {"fsync", "/sessions/"}}) == "");
  CHECK(missingOf(recorded.write, {{"mkdir", "/workspace/new/"},
                                   {"fsync", "/workspace/"},
                                   {"mkdir", "/workspace/new/dir/"},
                                   {"fsync", "/workspace/new/"},
                                   {"rename", "/workspace/new/dir/f"},
                                   {"fsync", "/workspace/new/dir/"}}) == "");
  CHECK(missingOf(recorded.edit, {{"rename", "/workspace/a.txt"}, {"fsync", "/workspace/"}}) == "");
  CHECK(missingOf(recorded.artifact, {{"mkdir", "/artifacts/"},
                                      {"fsync", "/sessions/" + recorded.session + "/"},
                                      {"rename", "/artifacts/1"},
                                      {"fsync", "/artifacts/"}}) == "");
  CHECK(missingOf(recorded.removal, {{"unlink", "/workspace/d"}, {"fsync", "/workspace/"}}) == "");
  const auto moved = std::find_if(recorded.deletion.begin(), recorded.deletion.end(), [&](const std::string& step) {
    return step.starts_with("rename ") && step.find("/sessions/" + recorded.session + " -> ") != std::string::npos;
  });
  REQUIRE(moved != recorded.deletion.end());
  const std::string doomed = moved->substr(moved->find(" -> ") + 4);
  CHECK(missingOf(recorded.deletion,
                  {{"rename", doomed}, {"fsync", "/sessions/"}, {"unlink", doomed + "/state.json"}}) == "");
}

}  // namespace stitchkit::testing
