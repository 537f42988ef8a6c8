// A sandbox that cannot be set up is an error of its own kind, never a command's result.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/steady_timer.hpp>
#include <catch2/catch.hpp>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <thread>

#include "backend/launch/guest_file_operation.h"
#include "backend/launch/system_call_filter.h"
#include "tests/launch/launch_fixture.h"

using namespace stitchkit;
using namespace stitchkit::test;

namespace {

Result<GuestOutcome> runWith(LaunchFixture& fixture, const PreparedProfile& profile) {
  std::optional<Result<GuestOutcome>> result;
  GuestOptions options;
  int starts = 0;
  options.onStarted = [&starts](Result<void> started) {
    ++starts;
    CHECK(!started.has_value());
  };
  const auto guest = Guest::start(fixture.io, profile, LaunchFixture::command("/usr/bin/true"), {}, options,
                                  [&](Result<GuestOutcome> outcome) { result.emplace(std::move(outcome)); });
  CHECK(!result.has_value());  // never from inside start
  fixture.io.restart();
  fixture.io.run();
  CHECK(starts == 1);
  return std::move(result.value());
}

void checkUnavailable(const Result<GuestOutcome>& result, const std::string& hidden, const std::string& reason) {
  REQUIRE(!result.has_value());
  CHECK(result.error().kind == ErrorKind::kUnavailable);
  CHECK(result.error().message.find("/tmp") == std::string::npos);
  CHECK(result.error().reason == reason);
  CHECK(!result.error().hint.empty());
  CHECK(result.error().privateDetail.find(hidden) != std::string::npos);
  CHECK(zombies() == 0);
}

// As a container's profile may do it. For this thread and what it starts.
bool refuseSeccomp() {
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 3, 0),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
                           BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{7, program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

std::string textOf(std::initializer_list<sock_filter> instructions) {
  std::string text;
  for (const sock_filter& one : instructions) {
    text.append(reinterpret_cast<const char*>(&one), sizeof one);
  }
  return text;
}

constexpr sock_filter kAllowAll = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

}  // namespace

TEST_CASE("a bubblewrap that is missing or something else", "[unavailable]") {
  LaunchFixture fixture;
  checkUnavailable(runWith(fixture, {"/nonexistent/bwrap", fixture.profile(), {}}), "ENOENT", "bwrap-missing");
  checkUnavailable(runWith(fixture, {"/etc/passwd", fixture.profile(), {}}), "EACCES", "bwrap-not-executable");
  checkUnavailable(runWith(fixture, {"/usr/bin/false", fixture.profile(), {}}), "exited with 1", "bwrap-unknown");
  checkUnavailable(runWith(fixture, {"/usr/bin/true", fixture.profile(), {}}), "exited with 0", "bwrap-unknown");
}

TEST_CASE("too few descriptors: the hint names the limit", "[unavailable]") {
  LaunchFixture fixture;
  const PreparedProfile profile = fixture.prepared();
  rlimit former{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &former) == 0);
  for (const rlim_t few : {40, 64, 66}) {
    const rlimit low{few, former.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
    const Result<GuestOutcome> result = runWith(fixture, profile);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &former) == 0);
    checkUnavailable(result, "EMFILE", "open-files-limited");
    CHECK(result.error().hint.find("RLIMIT_NOFILE") != std::string::npos);
  }
}

TEST_CASE("a workspace that is gone", "[unavailable]") {
  LaunchFixture fixture;
  std::filesystem::remove_all(fixture.workspace());
  checkUnavailable(runWith(fixture, fixture.prepared()), "find source path", "state-directory-changed");
}

TEST_CASE("a workspace that was replaced, by a directory or by a link", "[unavailable]") {
  LaunchFixture fixture;
  const PreparedProfile profile = fixture.prepared();
  const std::string outside = fixture.workspace() + "-outside";
  std::filesystem::rename(fixture.workspace(), fixture.workspace() + "-before");
  std::filesystem::create_directory(outside);
  SECTION("a directory") {
    std::filesystem::create_directory(fixture.workspace());
  }
  SECTION("a link") {
    std::filesystem::create_symlink(outside, fixture.workspace());
  }
  checkUnavailable(runWith(fixture, profile), "", "workspace-replaced");
  CHECK(std::filesystem::is_empty(outside));
}

TEST_CASE("a helper that is gone", "[unavailable]") {
  LaunchFixture fixture;
  LaunchProfile profile = fixture.profile();
  profile.helper = "/etc/passwd";  // there, but nothing that can be executed
  checkUnavailable(runWith(fixture, fixture.prepared(profile)), "execvp", "state-directory-noexec");
}

TEST_CASE("a machine that takes no filter of system calls has no guest", "[unavailable]") {
  LaunchFixture fixture;
  const PreparedProfile profile = fixture.prepared();
  const Command command = LaunchFixture::shell("touch /workspace/ran");
  std::optional<Result<GuestOutcome>> refused;
  bool prepared = false;
  std::thread([&] {
    prepared = refuseSeccomp();
    refused.emplace(fixture.run(command, profile));
  }).join();
  REQUIRE(prepared);
  checkUnavailable(*refused, "SECCOMP", "seccomp-unavailable");
  CHECK(!exists(fixture.workspace() + "/ran"));
  const Result<GuestOutcome> control = fixture.run(command, profile);
  REQUIRE(control.has_value());
  CHECK(exists(fixture.workspace() + "/ran"));
}

TEST_CASE("a filter that is malformed, or another one, has no guest", "[unavailable]") {
  LaunchFixture fixture;
  const std::string filter = systemCallFilter().value();
  const auto [name, broken, detail] = GENERATE_COPY(table<std::string, std::string, std::string>({
      {"empty", "", "SECCOMP"},
      {"cut within an instruction", filter.substr(0, filter.size() - 3), "seccomp"},
      {"no verdict at its end", filter.substr(0, filter.size() - 8), "SECCOMP"},
      {"no program", std::string(64, 'x'), "SECCOMP"},
      {"reads where nothing is", textOf({BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4096), kAllowAll}), "SECCOMP"},
      {"longer than the kernel takes", std::string(sizeof(sock_filter) * BPF_MAXINSNS, '\0') + textOf({kAllowAll}),
       "SECCOMP"},
      {"allows everything", textOf({kAllowAll}), "step " + std::to_string(kLaunchStepFilter) + ": EINVAL"},
  }));
  CAPTURE(name);
  LaunchProfile profile = fixture.profile();
  profile.systemCalls = broken;
  const PreparedProfile prepared = fixture.prepared(profile);
  checkUnavailable(fixture.run(LaunchFixture::shell("touch /workspace/ran"), prepared), detail, "seccomp-unavailable");
  CHECK(!exists(fixture.workspace() + "/ran"));

  std::optional<Result<UniqueFd>> opened;
  const auto operation =
      openInGuest(fixture.io, prepared, {"/workspace/ran", O_CREAT | O_RDWR, 0600, false}, std::chrono::seconds(30),
                  [&](Result<UniqueFd> result) { opened.emplace(std::move(result)); });
  fixture.io.restart();
  fixture.io.run();
  REQUIRE(opened.has_value());
  CHECK(!opened->has_value());
  CHECK(!exists(fixture.workspace() + "/ran"));
}

TEST_CASE("a bubblewrap that is not given the filter, or does not install it", "[unavailable]") {
  LaunchFixture fixture;
  const std::string fake = fixture.workspace() + "/fake";
  std::string detail;
  SECTION("its descriptor is closed") {
    writeFile(fake, "#!/bin/sh\nexec 5<&-\nexec /usr/bin/bwrap \"$@\"\n", 0755);
    detail = "seccomp";
  }
  SECTION("the option is not there") {
    writeFile(fake, "#!/bin/bash\nexec 4< <(sed -z '/^--seccomp$/,+1d' <&4)\nexec /usr/bin/bwrap \"$@\"\n", 0755);
    detail = "step " + std::to_string(kLaunchStepFilter) + ": EINVAL";
  }
  checkUnavailable(fixture.run(LaunchFixture::shell("touch /workspace/ran"), {fake, fixture.profile(), {}}), detail,
                   "seccomp-unavailable");
  CHECK(!exists(fixture.workspace() + "/ran"));
}

TEST_CASE("a bubblewrap that hangs is given up, with all it started", "[unavailable][slow]") {
  LaunchFixture fixture;
  const std::string fake = fixture.workspace() + "/fake";
  writeFile(fake, "#!/bin/sh\nsleep 300.101 &\nsleep 300.101\n", 0755);
  const Result<GuestOutcome> result = runWith(fixture, {fake, fixture.profile(), {}});
  REQUIRE(!result.has_value());
  CHECK(result.error().kind == ErrorKind::kUnavailable);
  CHECK(result.error().reason == "set-up-timeout");
  CHECK(processesNamed("300.101") == 0);
}

TEST_CASE("a bubblewrap that ends and leaves a child behind", "[unavailable]") {
  LaunchFixture fixture;
  const std::string fake = fixture.workspace() + "/fake";
  writeFile(fake, "#!/bin/sh\nsleep 300.102 &\nexit 1\n", 0755);
  checkUnavailable(runWith(fixture, {fake, fixture.profile(), {}}), "exited with 1", "bwrap-unknown");
  CHECK(processesNamed("300.102") == 0);
}

TEST_CASE("a loop that is torn down takes its guests along", "[unavailable]") {
  TemporaryDirectory unused;
  {
    LaunchFixture fixture;
    fixture.start(LaunchFixture::command("sleep", {"300.103"}), {}, {}, [](auto) { FAIL("no completion"); });
    fixture.io.run_for(std::chrono::milliseconds(50));
  }
  CHECK(eventually([] { return liveSandboxes() + processesNamed("300.103") == 0; }));
  CHECK(zombies() == 0);
}
