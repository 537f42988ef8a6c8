// SIGKILL in front of every step of every operation that changes the state directory: what the next sidecar finds there
// is whole, free, and all there is.
//
// SANDBOX_KILLS=N: each operation at each of its steps, again and again until there were N kills in all. Without it a
// run of some seconds, at some of the steps.
#include "tests/crash/crash_world.h"
#include "tests/crash/step_tracer.h"

#include "tests/attacks/tool_client.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <optional>

namespace stitchkit::testing {
namespace {

namespace fs = std::filesystem;

/// What a host does, and is killed in the middle of. `prepare` comes before, undisturbed.
struct Operation {
  const char* name;
  std::function<void(CrashWorld&)> prepare;
  std::function<void(CrashWorld&)> run;
  bool newPlace = false;  ///< begins in a state directory that is not there yet
};

void write(CrashWorld& world, Session& session, const std::string& path, const std::string& text) {
  world.known().files[path].insert(text);
  world.sidecar().call("session.writeTextFile", {{"handle", session.handle()}, {"path", path}, {"text", text}});
}

void mayAppear(CrashWorld& world, const std::string& path) {
  world.known().files[path].insert(kNoFile);
}

Json createParams(CrashWorld& world) {
  return {{"template", {{"template", "t"}, {"files", templateFiles(world.variant())}}}, {"network", "deny-all"}};
}

/// A lease as a dead owner leaves it.
void leaveLease(CrashWorld& world) {
  const std::string path = world.pathOf(world.known().state) + "/lease";
  struct stat session {};
  REQUIRE(::stat(fs::path(path).parent_path().c_str(), &session) == 0);
  writeFile(path, R"({"format":"stitchkit-sandbox lease 1","program":"stitchkit-sandbox","pid":"1","since":""})", 0600);
  REQUIRE((::geteuid() != 0 || ::chown(path.c_str(), session.st_uid, session.st_gid) == 0));
}

/// The operation on the world's session, which is live and known by then.
class OnSession {
 public:
  using Work = std::function<void(CrashWorld&, Session&)>;
  OnSession(Work prepare, Work run) : prepare_(std::move(prepare)), run_(std::move(run)) {}
  [[nodiscard]] Operation as(const char* name) const {
    auto session = std::make_shared<Session*>(nullptr);
    return {name,
            [session, prepare = prepare_](CrashWorld& world) {
              *session = &world.open({{"kept.txt", "kept"}});
              prepare(world, **session);
            },
            [session, run = run_](CrashWorld& world) { run(world, **session); }};
  }

 private:
  Work prepare_;
  Work run_;
};

void nothing(CrashWorld& /*world*/, Session& /*session*/) {}

void spawnGuest(CrashWorld& world, Session& session) {
  world.sidecar().call("session.spawn", session.commandParams({"/bin/sleep", world.marker()}));
}

Json toolRules() {
  return {{"executables", {{"sh", "/bin/sh"}}}, {"limits", {{"maxShellOutputBytes", 64}, {"maxArtifactBytes", 65536}}}};
}

void writeTwice(CrashWorld& world, Session& session) {
  mayAppear(world, "new/dir/f");
  write(world, session, "new/dir/f", "first");
  write(world, session, "new/dir/f", std::string(9000, 'w'));
  write(world, session, "kept.txt", "");
}

void useTools(CrashWorld& world, Session& session) {
  ToolClient tools(world.sidecar(), session, toolRules());
  mayAppear(world, "tool/f");
  world.known().files["tool/f"].insert({"one two", "one three"});
  tools.call("write_file", {{"path", "tool/f"}, {"content", "one two"}});
  tools.call("edit_file", {{"path", "tool/f"}, {"oldText", "two"}, {"newText", "three"}});
  world.known().files["kept.txt"].insert("replaced");
  tools.call("write_file", {{"path", "kept.txt"}, {"content", "replaced"}, {"overwrite", true}});
}

void keepArtifacts(CrashWorld& world, Session& session) {
  ToolClient tools(world.sidecar(), session, toolRules());
  std::string numbers;
  for (int i = 1; i <= 1000; ++i) {
    numbers += std::to_string(i) + "\n";
  }
  world.known().artifact = "--- stdout ---\n" + numbers + "\n--- stderr ---\n";
  for (int i = 0; i < 2; ++i) {
    tools.call("run_command", {{"executable", "sh"}, {"args", {"-c", "seq 1000"}}});
  }
}

void removeTree(CrashWorld& world, Session& session) {
  mayAppear(world, "d/b.txt");
  mayAppear(world, "d/e/c.txt");
  world.sidecar().call("session.removePath", {{"handle", session.handle()}, {"path", "d"}});
}

void deleteSession(CrashWorld& world, Session& session) {
  world.known().mayBeGone = true;
  world.sidecar().call("handle.delete", {{"handle", session.handle()}});
}

void newVariant(CrashWorld& world) {
  world.expectTemplate(uniqueDigits());
}

void prewarm(CrashWorld& world) {
  world.sidecar().call("backend.prewarm", {{"template", "t"}, {"files", templateFiles(world.variant())}});
}

/// A template as another program may leave it: without the file that says that it is whole.
void breakTemplate(CrashWorld& world) {
  const Json made =
      world.sidecar().call("backend.prewarm", {{"template", "t"}, {"files", templateFiles(world.variant())}});
  REQUIRE(fs::remove(world.templatePath(made.at("templateKey")) + "/ready"));
}

void stopFirst(CrashWorld& /*world*/, Session& session) {
  session.stop();
}

void attach(CrashWorld& world, Session& session) {
  Session again(world.sidecar(), "deny-all", session.state());
  static_cast<void>(again);
}

std::vector<Operation> operations() {
  return {
      {"first use", [](CrashWorld&) {},
       [](CrashWorld& world) { world.sidecar().call("backend.create", createParams(world)); }, true},
      {"prewarm", newVariant, prewarm},
      {"prewarm over a broken template",
       [](CrashWorld& world) {
         newVariant(world);
         breakTemplate(world);
       },
       prewarm},
      {"create", prewarm, [](CrashWorld& world) { world.sidecar().call("backend.create", createParams(world)); }},
      OnSession(stopFirst, attach).as("attach"),
      OnSession(
          [](CrashWorld& world, Session& session) {
            session.stop();
            leaveLease(world);
          },
          attach)
          .as("attach after a dead owner"),
      OnSession(nothing, writeTwice).as("write"),
      OnSession(nothing, useTools).as("write and edit by tools"),
      OnSession(nothing, keepArtifacts).as("artifacts"),
      OnSession(nothing, removeTree).as("remove a path"),
      OnSession(spawnGuest, [](CrashWorld&, Session& session) { session.stop(); }).as("stop"),
      OnSession(spawnGuest, deleteSession).as("delete"),
      OnSession(stopFirst, deleteSession).as("delete after a stop"),
      OnSession(spawnGuest,
                [](CrashWorld& world, Session&) {
                  world.sidecar().closeInput();
                  world.sidecar().waitForExit();
                })
          .as("end of input"),
  };
}

/// Without SANDBOX_KILLS: a run of some seconds.
constexpr unsigned kCiStride = 5;

/// What is made once for a state directory is there afterwards.
void wearIn(CrashWorld& world) {
  const Session& session = world.open();
  world.sidecar().call("handle.delete", {{"handle", session.handle()}});
}

struct Tally {
  unsigned kills = 0;
  std::vector<std::string> faults;
};

/// One kill in front of a step. The step; nothing when the operation came to its end before: then it is killed there.
std::optional<std::string> killAt(CrashWorld& world, const Operation& operation, unsigned step, Tally& tally) {
  if (operation.newPlace) {
    world.renew();
  }
  operation.prepare(world);
  StepTracer tracer(world.sidecar().pid(), world.place(), step);
  try {
    operation.run(world);
  } catch (const std::runtime_error&) {
    // No answer, since it was killed; else the tracer knows of no kill.
  }
  const std::vector<std::string> steps = tracer.finish();
  const bool killed = tracer.killed();
  world.sidecar().kill(SIGKILL);
  world.sidecar().waitForExit();
  ++tally.kills;
  for (const std::string& fault : world.faultsAfterDeath()) {
    tally.faults.push_back(std::string(operation.name) + ", step " + std::to_string(step) + " (" +
                           (steps.empty() ? "none" : steps.back()) + "): " + fault);
  }
  return killed ? std::optional(steps.back()) : std::nullopt;
}

/// Hundreds of files are copied for guests, one like the other: one step in so many of those.
constexpr unsigned kAlike = 499;

/// Every `stride` of the steps, until the operation comes to its end.
void killAtSteps(const Operation& operation, unsigned stride, Tally& tally) {
  CrashWorld world(startModes().front());
  if (!operation.newPlace) {
    wearIn(world);
  }
  const unsigned before = tally.kills;
  const auto began = std::chrono::steady_clock::now();
  unsigned step = 1;
  while (const auto killed = killAt(world, operation, step, tally)) {
    step += killed->find("/support/.new-") != std::string::npos ? std::max(kAlike, stride) : stride;
    REQUIRE(step < 10000);
  }
  for (const std::string& fault : world.faultsAfterEnd()) {
    tally.faults.push_back(std::string(operation.name) + ", at the end: " + fault);
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
  std::cout << operation.name << ": " << tally.kills - before << " kills up to step " << step << ", " << took.count()
            << " ms" << std::endl;
}

/// 0 for the short run.
unsigned wantedKills() {
  const char* const text = std::getenv("SANDBOX_KILLS");
  return text != nullptr ? static_cast<unsigned>(std::stoul(text)) : 0;
}

}  // namespace

TEST_CASE("killed in front of any step, a sidecar leaves whole templates and sessions, free leases, and nothing else",
          "[kills]") {
  static Tally tally;
  const std::vector<Operation> all = operations();
  const unsigned share = (wantedKills() + static_cast<unsigned>(all.size()) - 1) / static_cast<unsigned>(all.size());
  for (const Operation& operation : all) {
    DYNAMIC_SECTION(operation.name) {
      const unsigned before = tally.kills;
      do {
        killAtSteps(operation, share > 0 ? 1 : kCiStride, tally);
      } while (tally.kills - before < share);
    }
  }
  for (const std::string& fault : tally.faults) {
    std::cout << "  " << fault << std::endl;
  }
  CHECK(tally.faults.empty());
  std::cout << "kills so far: " << tally.kills << ", faults: " << tally.faults.size() << std::endl;
}

}  // namespace stitchkit::testing
