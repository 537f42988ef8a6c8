// `stitchkit-sandbox doctor` ended at some moment: nothing of its trial stays in the state directory.
#include "tests/crash/crash_world.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>

#include <filesystem>
#include <memory>

#include "rpc/base/unique_fd.h"
#include "tests/support/processes.h"

namespace stitchkit::testing {
namespace {

namespace fs = std::filesystem;

struct Patient {
  StartAs startAs;
  std::shared_ptr<StateDirectory> state = std::make_shared<StateDirectory>(startAs);

  [[nodiscard]] std::optional<uid_t> user() const {
    return startAs == StartAs::kOrdinaryUser ? std::optional(kOrdinaryUid) : std::nullopt;
  }
  [[nodiscard]] pid_t startDoctor() const {
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    SpawnOptions options;
    options.argv = {sidecarBinary(), "doctor", "--state-dir", state->path()};
    options.environment = {"PATH=/usr/bin:/bin"};
    options.descriptors = {{null.get(), 0}, {null.get(), 1}, {null.get(), 2}};
    options.user = user();
    return spawnProgram(options);
  }
  [[nodiscard]] std::vector<std::string> trials() const {
    std::vector<std::string> found;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(state->path() + "/support", failed)) {
      if (entry.path().filename().string().starts_with(".new-")) {
        found.push_back(entry.path().filename().string());
      }
    }
    return found;
  }
  // Stopped with its trial half done.
  [[nodiscard]] pid_t stopDoctorAtWork() const {
    for (int attempt = 0; attempt < 50; ++attempt) {
      const pid_t doctor = startDoctor();
      const bool begun = eventually([this] { return !trials().empty(); }, Milliseconds(5000));
      ::kill(doctor, SIGSTOP);
      if (begun && eventually([this] { return !trials().empty(); }, Milliseconds(0))) {
        return doctor;
      }
      ::kill(doctor, SIGCONT);
      waitForChild(doctor, Milliseconds(15000));
    }
    FAIL("no doctor could be stopped at work");
    return -1;
  }
  [[nodiscard]] ProgramResult gc(const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv{sidecarBinary(), "gc", "--state-dir", state->path()};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return runProgram(argv, user());
  }
};

// With what cleans up behind it, as the end of a container does it.
void killWithChildren(pid_t doctor) {
  for (const pid_t child : descendantsOf(doctor)) {
    ::kill(child, SIGKILL);
  }
  ::kill(doctor, SIGKILL);
  waitForChild(doctor, Milliseconds(15000));
}

}  // namespace

TEST_CASE("a doctor that is ended by a signal leaves nothing, not even the state directory that it made") {
  const Patient patient{GENERATE(from_range(startModes()))};
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGKILL}) {
    CAPTURE(signal);
    const pid_t doctor = patient.stopDoctorAtWork();
    ::kill(doctor, signal);
    ::kill(doctor, SIGCONT);
    const auto ended = waitForChild(doctor, Milliseconds(15000));
    CHECK((ended && ended->signal == signal));
    CHECK(eventually([&] { return !fs::exists(patient.state->path()); }));
  }
}

TEST_CASE("the trial of a doctor that was killed with its children goes with the next gc and the next sidecar") {
  const Patient patient{GENERATE(from_range(startModes()))};
  pid_t doctor = patient.stopDoctorAtWork();
  const std::string trial = patient.trials().at(0);
  ProgramResult result = patient.gc({});
  CAPTURE(result.output);
  CHECK(result.output.empty());  // somebody's
  CHECK(patient.trials() == std::vector<std::string>{trial});
  killWithChildren(doctor);
  REQUIRE(patient.trials() == std::vector<std::string>{trial});

  const std::string line = " leftover " + trial + " (leftover)\n";
  CHECK(patient.gc({"--dry-run"}).output == "would-remove" + line);
  CHECK(patient.trials().size() == 1);
  CHECK(patient.gc({}).output == "removed" + line);
  CHECK(patient.trials().empty());

  killWithChildren(patient.stopDoctorAtWork());
  REQUIRE(patient.trials().size() == 1);
  SidecarOptions options;
  options.startAs = patient.startAs;
  options.state = patient.state;
  Sidecar sidecar(options);
  const Session session(sidecar);
  CHECK(eventually([&] { return patient.trials().empty(); }));
}

}  // namespace stitchkit::testing
