// The doctor where isolation works, and where it does not: real programs, real namespaces, real file systems.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "backend/cgroups/cgroup_delegation.h"
#include "backend/diagnosis/cause.h"
#include "tests/doctor/doctor_run.h"
#include "tests/support/sidecar.h"

namespace stitchkit::testing {
namespace {

namespace fs = std::filesystem;

// Runs nothing else.
constexpr uid_t kLonelyUid = 34567;

bool isRoot() {
  return ::geteuid() == 0;
}

// The folder of the test, in which whoever runs the doctor can make the state directory.
ScratchFolder folderFor(const Surroundings& where) {
  return ScratchFolder(where.user);
}

using Causes = std::vector<std::string>;

// One run, in which each of the checks fails for one of the causes.
void checkFails(const ScratchFolder& folder, const Surroundings& where, const std::vector<const char*>& names,
                const Causes& causes) {
  const Json report = doctorReport(folder, where);
  INFO(report.dump(1));
  CHECK(report["ok"] == false);
  for (const char* name : names) {
    const Json check = checkOf(report, name);
    CHECK(check["status"] == "failed");
    CHECK(std::find(causes.begin(), causes.end(), check["cause"]) != causes.end());
    CHECK(!check["hint"].get<std::string>().empty());
  }
  CHECK(!fs::exists(folder.path() + where.state));
}

std::vector<Surroundings> starters() {
  std::vector<Surroundings> all(1);
  all[0].user = ordinaryUser();
  if (isRoot()) {
    all.emplace_back();
  }
  return all;
}

TEST_CASE("here it works, whoever starts it, and nothing is left", "[doctor]") {
  for (const Surroundings& where : starters()) {
    const ScratchFolder folder = folderFor(where);
    const Json report = doctorReport(folder, where);
    INFO(report.dump(1));
    CHECK(report["ok"] == true);
    CHECK(report["version"].is_string());
    for (const char* name : {"bubblewrap", "kernel", "namespaces", "proc", "state-directory", "launch"}) {
      CHECK(checkOf(report, name)["status"] == "ok");
    }
    const auto said = checkOf(report, "user")["message"].get<std::string>();
    CHECK((said.find("started by root") == 0) == (isRoot() && !where.user));
    CHECK(fs::is_empty(folder.path()));
  }
}

TEST_CASE("no control group is left of a user who had none", "[doctor]") {
  if (!isRoot()) {
    WARN("only root can become another user");
    return;
  }
  constexpr std::uint32_t kNobodyElses = 64999;
  CgroupRequest request;
  request.owner = CgroupOwner{kNobodyElses, kNobodyElses};
  const std::vector<std::string> directories = delegatedDirectories(request);
  const auto exist = [](const std::string& directory) { return fs::exists(directory); };
  REQUIRE(!directories.empty());
  REQUIRE(std::none_of(directories.begin(), directories.end(), exist));
  Surroundings where;
  where.options = {"--user", std::to_string(kNobodyElses)};
  const ScratchFolder folder = folderFor(where);
  const Json report = doctorReport(folder, where);
  INFO(report.dump(1));
  CHECK(report["ok"] == true);
  CHECK(checkOf(report, "user")["message"] == "started by root, runs as 64999");
  CHECK(std::none_of(directories.begin(), directories.end(), exist));
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("a state directory that is there keeps what it holds, and gets nothing", "[doctor]") {
  Surroundings where;
  where.user = ordinaryUser();
  const ScratchFolder folder = folderFor(where);
  const std::vector<Json> first =
      converse(folder, where, {{{"method", "backend.prewarm"}, {"params", {{"template", "t"}}}}});
  REQUIRE(first[0].contains("result"));
  const auto list = [&folder] {
    std::set<std::string> paths;
    for (const auto& entry : fs::recursive_directory_iterator(folder / "state")) {
      paths.insert(entry.path().string());
    }
    return paths;
  };
  const auto before = list();
  REQUIRE(before.size() > 3);
  CHECK(doctorReport(folder, where)["ok"] == true);
  CHECK(list() == before);
}

TEST_CASE("bubblewrap is missing, is something else, or may not be executed", "[doctor]") {
  Surroundings where;
  const ScratchFolder folder = folderFor(where);
  where.options = {"--bwrap", "/nonexistent/bwrap"};
  checkFails(folder, where, {"bubblewrap", "launch"}, {"bwrap-missing"});
  where.options = {"--bwrap", "/usr/bin/false"};
  checkFails(folder, where, {"bubblewrap"}, {"bwrap-unknown"});
  fs::copy_file("/usr/bin/bwrap", folder / "bwrap");
  REQUIRE(::chmod((folder / "bwrap").c_str(), 0644) == 0);
  where.options = {"--bwrap", folder / "bwrap"};
  checkFails(folder, where, {"bubblewrap"}, {"bwrap-not-executable"});
  writeFile(folder / "hangs", "#!/bin/sh\necho\nexec sleep 300.201\n", 0755);
  where.options = {"--bwrap", folder / "hangs"};
  where.state = "/bwrap/state";  // below a file, so that nothing is launched with it
  where.user = ordinaryUser();
  checkFails(folder, where, {"bubblewrap"}, {"bwrap-unknown"});
  CHECK(eventually(
      [] {
        return runProgram({"/usr/bin/pgrep", "-f", "sleep 300.201"}).status.code == 1;
      },
      Milliseconds(15000)));
}

TEST_CASE("bubblewrap is too old", "[doctor]") {
  Surroundings where;
  const ScratchFolder folder = folderFor(where);
  where.options = {"--bwrap", oldBubblewrap(folder)};
  checkFails(folder, where, {"bubblewrap", "launch"}, {"bwrap-too-old"});
}

TEST_CASE("bubblewrap is setuid", "[doctor]") {
  if (!isRoot()) {
    WARN("only root can make a file of another user's");
    return;
  }
  Surroundings where;
  const ScratchFolder folder = folderFor(where);
  where.options = {"--bwrap", setuidBubblewrap(folder)};
  checkFails(folder, where, {"bubblewrap", "launch"}, {"bwrap-setuid"});
}

TEST_CASE("no further user namespace may be made", "[doctor]") {
  Surroundings where;
  where.user = ordinaryUser();
  where.wrapper = {"/usr/bin/bwrap", "--unshare-user", "--disable-userns", "--dev-bind", "/", "/"};
  const ScratchFolder folder = folderFor(where);
  checkFails(folder, where, {"namespaces", "launch"}, {"user-namespaces-limited"});
  where.options = {"--bwrap", "/nonexistent/bwrap"};  // shown without bubblewrap as well
  checkFails(folder, where, {"namespaces"}, {"user-namespaces-limited"});
}

TEST_CASE("a container's filter refuses namespaces", "[doctor]") {
  Surroundings where;
  where.wrapper = surroundings({"--refuse", "namespaces"});
  const ScratchFolder folder = folderFor(where);
  // Whether this machine is a container depends on the machine.
  const Causes either{"container-seccomp", "seccomp-filter"};
  checkFails(folder, where, {"namespaces", "launch"}, either);
}

TEST_CASE("a part of /proc is covered, or read-only", "[doctor]") {
  // As Docker does it with files, with folders, and with what may be read.
  for (const auto& [option, path] : {std::pair{"--cover", "/proc/interrupts"}, std::pair{"--cover", "/proc/tty"},
                                     std::pair{"--write-protect", "/proc/sys"}}) {
    Surroundings where;
    where.wrapper = surroundings({option, path});
    const ScratchFolder folder = folderFor(where);
    checkFails(folder, where, {"proc", "launch"}, {"proc-masked"});
  }
}

TEST_CASE("the kernel lacks a call", "[doctor]") {
  Surroundings where;
  const ScratchFolder folder = folderFor(where);
  where.wrapper = surroundings({"--refuse", "pidfd"});
  checkFails(folder, where, {"kernel"}, {"kernel-too-old"});
  where.wrapper = surroundings({"--refuse", "seccomp"});
  checkFails(folder, where, {"kernel", "launch"}, {"seccomp-unavailable"});
}

TEST_CASE("the state directory is on a file system that executes nothing, is full, or is read-only", "[doctor]") {
  Surroundings where;
  where.user = ordinaryUser();
  where.state = "/mounted/state";
  const ScratchFolder folder = folderFor(where);
  fs::create_directory(folder / "mounted");
  fs::permissions(folder / "mounted", fs::perms::all);
  where.wrapper = surroundings({"--noexec", folder / "mounted"});
  checkFails(folder, where, {"state-directory", "launch"}, {"state-directory-noexec"});
  where.wrapper = surroundings({"--small", folder / "mounted"});
  checkFails(folder, where, {"state-directory"}, {"state-directory-full"});
  where.wrapper = surroundings({"--read-only", folder / "mounted"});
  for (const Surroundings& starter : starters()) {
    where.user = starter.user;
    checkFails(folder, where, {"state-directory"}, {"state-directory-not-writable"});
  }
  where.user = ordinaryUser();
  where.wrapper = {};
  CHECK(doctorReport(folder, where)["ok"] == true);  // the control
}

TEST_CASE("the state directory is out of reach, or another's", "[doctor]") {
  if (!isRoot()) {
    WARN("only root can make a folder that its user cannot search");
    return;
  }
  const ScratchFolder folder;
  fs::create_directory(folder / "closed");
  REQUIRE(::chmod((folder / "closed").c_str(), 0700) == 0);
  for (Surroundings where : starters()) {
    where.state = "/closed/state";
    checkFails(folder, where, {"state-directory"}, {"state-directory-not-searchable"});
    where.state = "/state";
    if (where.user) {
      checkFails(folder, where, {"state-directory"}, {"state-directory-not-writable"});
    }
  }
}

TEST_CASE("the state directory's path leads nowhere, whoever starts it", "[doctor]") {
  for (Surroundings where : starters()) {
    const ScratchFolder folder = folderFor(where);
    writeFile(folder / "file", "x", 0666);
    const std::string up = "/../../../../..";
    for (const std::string& state : {std::string("/file"), std::string("/file/state"), up + "/dev/null",
                                     '/' + std::string(300, 'n'), up + "/proc/brk"}) {
      CAPTURE(state, where.user.has_value());
      where.state = state;
      const Json report = doctorReport(folder, where);
      const Json check = checkOf(report, "state-directory");
      INFO(report.dump(1));
      CHECK(report["ok"] == false);
      CHECK(check["cause"] == "state-directory-path");
      CHECK(check["hint"] == textOf(Cause::kStateDirectoryPath).hint);
      CHECK(checkOf(report, "user")["status"] == "ok");
    }
  }
}

TEST_CASE("files or processes are too few", "[doctor]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  WARN("a sanitizer wants files and threads of its own");
  return;
#endif
  Surroundings where;
  const ScratchFolder folder(isRoot() ? std::optional<uid_t>(kLonelyUid) : std::nullopt);
  where.user = isRoot() ? std::optional<uid_t>(kLonelyUid) : std::nullopt;
  for (const int number : {6, 8, 12, 16, 24, 40, 60}) {
    CAPTURE(number);
    where.wrapper = {"/usr/bin/prlimit", "--nofile=" + std::to_string(number)};
    checkFails(folder, where, {"limits"}, {"open-files-limited"});
    if (isRoot()) {
      Surroundings root = where;
      root.user.reset();
      checkFails(folder, root, {"limits"}, {"open-files-limited"});
    }
  }
  where.wrapper = {"/usr/bin/prlimit", "--nofile=24:1024"};  // raised, as serve does it
  CHECK(doctorReport(folder, where)["ok"] == true);
  if (!isRoot()) {
    WARN("only root has a user that runs nothing else");
    return;
  }
  for (const int number : {1, 2, 4, 6, 8, 10, 12}) {
    CAPTURE(number);
    where.wrapper = {"/usr/bin/prlimit", "--nproc=" + std::to_string(number)};
    checkFails(folder, where, {"limits"}, {"processes-limited"});
  }
}

TEST_CASE("root that stays root is warned of", "[doctor]") {
  if (!isRoot()) {
    WARN("only root can stay root");
    return;
  }
  Surroundings where;
  where.options = {"--allow-root"};
  const ScratchFolder folder = folderFor(where);
  const Json report = doctorReport(folder, where);
  INFO(report.dump(1));
  CHECK(report["ok"] == true);
  CHECK(checkOf(report, "user")["status"] == "warning");
  CHECK(checkOf(report, "user")["cause"] == "stays-root");
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("a command that could not write what it has to say fails, and says so on stderr", "[doctor]") {
  Surroundings where;
  const ScratchFolder folder = folderFor(where);
  fs::create_directory(folder / "empty");
  const std::string program = sidecarBinary();
  const std::string state = " --state-dir " + folder / "empty";
  for (const std::string& command : {"doctor" + state, "doctor --json" + state, "gc" + state + " --json",
                                     std::string("--version"), std::string("--help"), std::string("gc --help")}) {
    for (const auto& [output, why] :
         {std::pair{">/dev/full", "No space left on device"}, std::pair{">&-", "Bad file descriptor"}}) {
      CAPTURE(command, output);
      const auto result = runProgram({"/bin/sh", "-c", program + " " + command + " 2>&1 " + output});
      CHECK(result.status.code == 1);
      CHECK(result.output.find(std::string("standard output could not be written: ") + why) != std::string::npos);
    }
  }
  CHECK(runProgram({"/bin/sh", "-c", program + " --version <&- 2>&-"}).status.code == 0);
}

TEST_CASE("commands have options of their own", "[doctor]") {
  const auto run = [](Arguments arguments) {
    arguments.insert(arguments.begin(), sidecarBinary());
    return runProgram(std::move(arguments));
  };
  CHECK(run({"doctor", "--serial"}).status.code == 64);
  CHECK(run({"doctor", "--serial"}).output.find("--serial is no option of doctor") != std::string::npos);
  CHECK(run({"--json"}).output.find("--json is no option of serve") != std::string::npos);
  CHECK(run({"nurse"}).output.find("unknown command nurse") != std::string::npos);
  const auto help = run({"--help", "doctor"});
  CHECK(help.status.code == 0);
  CHECK(help.output.find("--json") != std::string::npos);
  CHECK(help.output.find("--serial") == std::string::npos);
  CHECK(run({"--help"}).output.find("doctor --help") != std::string::npos);
  CHECK(run({"--help"}).output.find("--json") == std::string::npos);
}

}  // namespace
}  // namespace stitchkit::testing
