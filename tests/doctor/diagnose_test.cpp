// Each cause from its facts.
#include "backend/doctor/diagnose.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <set>

#include "backend/diagnosis/cause.h"
#include "backend/doctor/report.h"
#include "tests/doctor/fake_root.h"

namespace stitchkit::testing {
namespace {

/// A machine where it works.
DoctorFacts healthy() {
  DoctorFacts facts;
  facts.user.name = "alice (1000)";
  facts.bubblewrap = {"/usr/bin/bwrap", {}, true, "bubblewrap 0.8.0", std::array<int, 3>{0, 8, 0}};
  facts.kernel.release = "6.1.0";
  facts.cgroups = {true, true, true, "cgroup v2"};
  facts.stateDirectory.emplace();
  facts.stateDirectory->path = "/home/alice/.local/state/stitchkit-sandbox";
  facts.stateDirectory->freeBytes = std::uint64_t{1} << 30U;
  facts.launch = LaunchTrial{std::nullopt, 20};
  facts.namespaces = NamespaceTrial{};
  return facts;
}

/// The same, but the launch fails so.
DoctorFacts failing(Cause cause) {
  DoctorFacts facts = healthy();
  facts.launch = LaunchTrial{unavailableBecause("The sandbox could not be set up", cause), 20};
  return facts;
}

const Finding& of(const std::vector<Finding>& findings, const std::string& name) {
  for (const Finding& finding : findings) {
    if (finding.name == name) {
      return finding;
    }
  }
  throw std::runtime_error("no check " + name);
}

Finding check(const DoctorFacts& facts, const std::string& name) {
  return of(diagnose(facts), name);
}

void checkFailed(const DoctorFacts& facts, const std::string& name, const std::string& cause,
                 const std::string& said = "") {
  const Finding finding = check(facts, name);
  CAPTURE(finding.message);
  CHECK(finding.status == FindingStatus::kFailed);
  CHECK(finding.cause == cause);
  CHECK(!finding.hint.empty());
  CHECK(finding.message.find(said) != std::string::npos);
}

TEST_CASE("where it works, all is fine", "[diagnose]") {
  const std::vector<Finding> findings = diagnose(healthy());
  CHECK(findings.size() == 9);
  for (const Finding& finding : findings) {
    CAPTURE(finding.name);
    CHECK(finding.status == FindingStatus::kOk);
    CHECK(finding.cause.empty());
    CHECK(finding.hint.empty());
  }
  CHECK(isolationWorks(findings));
}

TEST_CASE("a launch that worked is believed", "[diagnose]") {
  DoctorFacts facts = healthy();
  facts.machine.appArmorRestricts = true;  // bubblewrap has a profile
  facts.machine.filtered = true;
  facts.kernel.seccomp = false;  // refused in the way that it was asked for
  facts.machine.coveredProcEntries = {"/proc/xen"};
  facts.bubblewrap.file.setuid = true;  // on a file system without such bits
  facts.stateDirectory->noexec = true;
  facts.namespaces = NamespaceTrial{"user namespace", EPERM};
  CHECK(isolationWorks(diagnose(facts)));
}

TEST_CASE("bubblewrap", "[diagnose]") {
  DoctorFacts facts = failing(Cause::kSetUpFailed);
  SECTION("missing") {
    facts.bubblewrap.file.error = ENOENT;
    checkFailed(facts, "bubblewrap", "bwrap-missing", "/usr/bin/bwrap");
  }
  SECTION("not executable") {
    facts.bubblewrap.file.error = EACCES;
    checkFailed(facts, "bubblewrap", "bwrap-not-executable");
  }
  SECTION("setuid") {
    facts.bubblewrap.file.setuid = true;
    checkFailed(facts, "bubblewrap", "bwrap-setuid");
  }
  SECTION("capabilities") {
    facts.bubblewrap.file.capabilities = true;
    checkFailed(facts, "bubblewrap", "bwrap-capabilities");
  }
  SECTION("too old") {
    facts.bubblewrap.answer = "bubblewrap 0.7.9";
    facts.bubblewrap.version = {0, 7, 9};
    checkFailed(facts, "bubblewrap", "bwrap-too-old", "0.7.9");
  }
  SECTION("something else") {
    facts.bubblewrap.answer = "false (GNU coreutils) 9.1";
    facts.bubblewrap.version.reset();
    checkFailed(facts, "bubblewrap", "bwrap-unknown", "coreutils");
  }
}

TEST_CASE("the kernel", "[diagnose]") {
  DoctorFacts facts = failing(Cause::kSetUpFailed);
  SECTION("too old") {
    facts.kernel.missing = {"pidfd_open", "close_range"};
    checkFailed(facts, "kernel", "kernel-too-old", "without pidfd_open, close_range");
  }
  SECTION("no filters") {
    facts.kernel.seccomp = false;
    checkFailed(facts, "kernel", "seccomp-unavailable");
  }
  SECTION("no openat2: slower, no more") {
    facts = healthy();
    facts.kernel.openat2 = false;
    CHECK(check(facts, "kernel").status == FindingStatus::kWarning);
    CHECK(isolationWorks(diagnose(facts)));
  }
}

TEST_CASE("namespaces, from files of /proc as such a machine has them", "[diagnose]") {
  const FakeRoot root;
  DoctorFacts facts = failing(Cause::kBubblewrapMissing);  // so that nothing else says it
  const auto read = [&] { facts.machine = readMachineFacts(root.path()); };
  SECTION("switched off by Debian's sysctl") {
    root.write("/proc/sys/kernel/unprivileged_userns_clone", "0\n");
    read();
    checkFailed(facts, "namespaces", "user-namespaces-disabled", "unprivileged_userns_clone is 0");
  }
  SECTION("not built in") {
    root.remove("/proc/self/ns/user");
    read();
    checkFailed(facts, "namespaces", "user-namespaces-disabled", "the kernel has none");
  }
  SECTION("limited to 0") {
    root.write("/proc/sys/user/max_user_namespaces", "0\n");
    read();
    checkFailed(facts, "namespaces", "user-namespaces-limited", "user.max_user_namespaces is 0");
  }
  SECTION("another kind limited to 0") {
    root.write("/proc/sys/user/max_net_namespaces", "0\n");
    read();
    checkFailed(facts, "namespaces", "user-namespaces-limited", "user.max_net_namespaces is 0");
  }
  SECTION("restricted by AppArmor: that bubblewrap is too, nobody has seen yet") {
    root.write("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
    facts.namespaces = NamespaceTrial{"uid map", EPERM};
    read();
    const Finding finding = check(facts, "namespaces");
    CHECK(finding.status == FindingStatus::kWarning);
    CHECK(finding.cause == "apparmor-restricts-user-namespaces");
    CHECK(finding.hint.find("userns,") != std::string::npos);
  }
  SECTION("filtered in a container") {
    root.write("/.dockerenv", "");
    root.write("/proc/self/status", "Name:\tx\nSeccomp:\t2\n");
    facts.namespaces = NamespaceTrial{"user namespace", EPERM};
    read();
    checkFailed(facts, "namespaces", "container-seccomp");
  }
  SECTION("none left") {
    facts.namespaces = NamespaceTrial{"user namespace", ENOSPC};
    read();
    checkFailed(facts, "namespaces", "user-namespaces-limited");
  }
  SECTION("nothing wrong with them") {
    read();
    CHECK(check(facts, "namespaces").status == FindingStatus::kOk);
  }
}

TEST_CASE("what the launch has shown stands at the check that it belongs to", "[diagnose]") {
  const std::pair<Cause, const char*> places[] = {
      {Cause::kBubblewrapCapabilities, "bubblewrap"},
      {Cause::kUserNamespacesDisabled, "namespaces"},
      {Cause::kUserNamespacesLimited, "namespaces"},
      {Cause::kAppArmorRestrictsUserNamespaces, "namespaces"},
      {Cause::kContainerSeccomp, "namespaces"},
      {Cause::kSeccompFilter, "namespaces"},
      {Cause::kUserNamespacesRefused, "namespaces"},
      {Cause::kMountsRefused, "namespaces"},
      {Cause::kProcMasked, "proc"},
      {Cause::kSeccompUnavailable, "kernel"},
      {Cause::kStateDirectoryNotSearchable, "state-directory"},
      {Cause::kStateDirectoryNoexec, "state-directory"},
  };
  for (const auto& [cause, name] : places) {
    const DoctorFacts facts = failing(cause);
    checkFailed(facts, name, textOf(cause).name);
    checkFailed(facts, "launch", textOf(cause).name);
    std::set<std::string> failed;
    for (const Finding& finding : diagnose(facts)) {
      if (finding.status == FindingStatus::kFailed) {
        failed.insert(finding.name);
      }
    }
    CHECK(failed == std::set<std::string>{name, "launch"});
  }
}

TEST_CASE("a covered /proc is named", "[diagnose]") {
  DoctorFacts facts = failing(Cause::kBubblewrapMissing);
  facts.machine.coveredProcEntries = {"/proc/kcore", "/proc/sys"};
  checkFailed(facts, "proc", "proc-masked", "/proc/kcore, /proc/sys");
}

TEST_CASE("limits are the cause, and nothing else is", "[diagnose]") {
  DoctorFacts facts;
  facts.limits = {Cause::kProcessesLimited, "3 further ones"};
  checkFailed(facts, "limits", "processes-limited", "3 further ones");
  for (const Finding& finding : diagnose(facts)) {
    CAPTURE(finding.name);
    CHECK((finding.name == "limits" || finding.cause == "not-tried"));
  }
  CHECK_FALSE(isolationWorks(diagnose(facts)));
  CHECK(diagnose(facts).size() == diagnose(healthy()).size());
  checkFailed(failing(Cause::kOpenFilesLimited), "limits", "open-files-limited");
}

TEST_CASE("the state directory", "[diagnose]") {
  DoctorFacts facts = failing(Cause::kSetUpFailed);
  facts.launch.reset();
  StateDirectoryFacts& state = *facts.stateDirectory;
  SECTION("not writable") {
    state.error = EROFS;
    state.failed = "make a directory";
    checkFailed(facts, "state-directory", "state-directory-not-writable", "make a directory: EROFS");
  }
  SECTION("full") {
    state.error = ENOSPC;
    facts.stateDirectory->cause = Cause::kStateDirectoryFull;
    checkFailed(facts, "state-directory", "state-directory-full");
  }
  SECTION("out of reach") {
    state.error = EACCES;
    state.unsearchable = "/root";
    facts.stateDirectory->cause = Cause::kStateDirectoryNotSearchable;
    checkFailed(facts, "state-directory", "state-directory-not-searchable", "/root");
  }
  SECTION("on a file system that lacks something") {
    state.lacking = {"file locks", "sockets"};
    checkFailed(facts, "state-directory", "state-directory-file-system", "no file locks, sockets");
  }
  SECTION("noexec") {
    state.noexec = true;
    checkFailed(facts, "state-directory", "state-directory-noexec");
  }
  SECTION("nearly full, and yet it works") {
    facts = healthy();
    facts.stateDirectory->freeBytes = 1000000;
    CHECK(check(facts, "state-directory").cause == "state-directory-full");
    CHECK(isolationWorks(diagnose(facts)));
  }
  SECTION("not handed over by root") {
    facts.stateDirectory.reset();
    facts.user.error =
        Error(ErrorKind::kUnavailable, "It belongs to another").withReason("state-directory-owner").withHint("Mend.");
    checkFailed(facts, "state-directory", "state-directory-owner");
    CHECK(check(facts, "user").status == FindingStatus::kOk);
    checkFailed(
        [&] {
          facts.user.error->reason = "root-not-given-up";
          return facts;
        }(),
        "user", "root-not-given-up");
  }
}

TEST_CASE("who it runs as", "[diagnose]") {
  DoctorFacts facts = healthy();
  facts.user = {true, false, "nobody (65534)", std::nullopt};
  CHECK(check(facts, "user").message == "started by root, runs as nobody (65534)");
  facts.user.staysRoot = true;
  CHECK(check(facts, "user").status == FindingStatus::kWarning);
  CHECK(check(facts, "user").cause == "stays-root");
  CHECK(isolationWorks(diagnose(facts)));
}

TEST_CASE("without cgroups some ceilings are refused, and isolation works", "[diagnose]") {
  DoctorFacts facts = healthy();
  facts.cgroups = {true, false, false, "cgroup v1"};
  const Finding finding = check(facts, "cgroups");
  CHECK(finding.status == FindingStatus::kWarning);
  CHECK(finding.cause == "no-cgroup");
  CHECK(finding.message.find("maxProcesses, cpus") != std::string::npos);
  CHECK(isolationWorks(diagnose(facts)));
}

}  // namespace
}  // namespace stitchkit::testing
