// SANDBOX_UNAVAILABLE says why and what to do, over the wire, and no path of the host.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/doctor/doctor_run.h"
#include "tests/support/session.h"

namespace stitchkit::testing {
namespace {

namespace fs = std::filesystem;

const Json kCreate{{"method", "backend.create"},
                   {"params", {{"template", {{"template", "t"}}}, {"network", "deny-all"}}}};

// The answer to a create that must fail; the state directory holds no session afterwards.
void checkUnavailable(const ScratchFolder& folder, const Surroundings& where, const std::vector<std::string>& reasons) {
  const std::vector<Json> answers = converse(folder, where, {kCreate});
  const Json& answer = answers[0];
  INFO(answer.dump(1));
  REQUIRE(answer.contains("error"));
  const Json data = answer["error"]["data"];
  CHECK(data["code"] == "SANDBOX_UNAVAILABLE");
  CHECK(std::find(reasons.begin(), reasons.end(), data.value("reason", "")) != reasons.end());
  CHECK(data.value("hint", "").size() > 20);
  CHECK(answer.dump().find(folder.path()) == std::string::npos);
  CHECK(answer["error"]["message"].get<std::string>().find("EACCES") == std::string::npos);
}

TEST_CASE("over the wire: bubblewrap is missing, too old, something else", "[unavailable]") {
  Surroundings where;
  const ScratchFolder folder;
  where.options = {"--bwrap", folder / "missing"};
  checkUnavailable(folder, where, {"bwrap-missing"});
  where.options = {"--bwrap", oldBubblewrap(folder)};
  checkUnavailable(folder, where, {"bwrap-too-old"});
  where.options = {"--bwrap", "/usr/bin/true"};
  checkUnavailable(folder, where, {"bwrap-unknown"});
}

TEST_CASE("one cause for what is wrong with bubblewrap, in each check and over the wire", "[unavailable]") {
  Surroundings where;
  const ScratchFolder folder;
  const auto check = [&](const std::string& text, mode_t mode, const std::string& cause) {
    CAPTURE(text);
    const std::string path = folder / "fake";
    writeFile(path, text, mode);
    where.options = {"--bwrap", path};
    const Json report = doctorReport(folder, where);
    CHECK(checkOf(report, "bubblewrap")["cause"] == cause);
    CHECK(checkOf(report, "launch")["cause"] == cause);
    checkUnavailable(folder, where, {cause});
    fs::remove(path);
  };
  check("#!/nonexistent/shell\n", 0755, "bwrap-unknown");
  check("#!/bin/sh\necho bubblewrap 0.4.0\n", 0755, "bwrap-too-old");
  check("#!/bin/sh\necho bubblewrap 0.4.0 >&2\nexit 1\n", 0755, "bwrap-too-old");
  check("#!/bin/sh\necho bubblewrap 0.9.0\n", 0755, "bwrap-unknown");
  check("#!/bin/sh\necho hello\n", 0755, "bwrap-unknown");
  check("neither a script nor a program\n", 0755, "bwrap-unknown");
  check("", 0755, "bwrap-unknown");
  check("#!/bin/sh\n", 0644, "bwrap-not-executable");
}

TEST_CASE("over the wire: bubblewrap is setuid", "[unavailable]") {
  if (::geteuid() != 0) {
    WARN("only root can make a file of another user's");
    return;
  }
  Surroundings where;
  const ScratchFolder folder;
  where.options = {"--bwrap", setuidBubblewrap(folder)};
  checkUnavailable(folder, where, {"bwrap-setuid"});
}

TEST_CASE("over the wire: no user namespaces", "[unavailable]") {
  Surroundings where;
  where.user = ordinaryUser();
  const ScratchFolder folder(where.user);
  where.wrapper = {"/usr/bin/bwrap", "--unshare-user", "--disable-userns", "--dev-bind", "/", "/"};
  checkUnavailable(folder, where, {"user-namespaces-limited"});
  where.wrapper = surroundings({"--refuse", "namespaces"});
  checkUnavailable(folder, where, {"container-seccomp", "seccomp-filter"});
}

TEST_CASE("over the wire: /proc is covered, the state directory noexec or full", "[unavailable]") {
  Surroundings where;
  where.user = ordinaryUser();
  where.state = "/mounted/state";
  const ScratchFolder folder(where.user);
  fs::create_directory(folder / "mounted");
  fs::permissions(folder / "mounted", fs::perms::all);
  where.wrapper = surroundings({"--cover", "/proc/interrupts"});
  checkUnavailable(folder, where, {"proc-masked"});
  where.wrapper = surroundings({"--noexec", folder / "mounted"});
  checkUnavailable(folder, where, {"state-directory-noexec"});
  where.wrapper = surroundings({"--small", folder / "mounted"});
  checkUnavailable(folder, where, {"state-directory-full"});
}

TEST_CASE("over the wire: the state directory cannot be used, in the words of the doctor", "[unavailable]") {
  Surroundings where;
  where.user = ordinaryUser();
  const ScratchFolder folder(where.user);
  fs::create_directory(folder / "mounted");
  fs::permissions(folder / "mounted", fs::perms::all);
  writeFile(folder / "file", "x");
  const std::string up = "/../../../../..";
  const Json prewarm{{"method", "backend.prewarm"}, {"params", {{"template", "t"}}}};
  const auto check = [&](const std::string& state, const std::string& reason) {
    where.state = state;
    const Json found = checkOf(doctorReport(folder, where), "state-directory");
    CAPTURE(state);
    CHECK(found["cause"] == reason);
    checkUnavailable(folder, where, {reason});
    for (const Json& request : {kCreate, prewarm}) {
      const Json error = converse(folder, where, {request})[0]["error"];
      CHECK(error["data"].value("reason", "") == reason);
      CHECK(error["data"]["hint"] == found["hint"]);
    }
  };
  check("/file", "state-directory-path");
  check("/file/state", "state-directory-path");
  check(up + "/dev/null", "state-directory-path");
  check(up + "/proc/brk", "state-directory-path");
  check('/' + std::string(300, 'n'), "state-directory-path");
  where.wrapper = surroundings({"--read-only", folder / "mounted"});
  check("/mounted/deep/state", "state-directory-not-writable");
  where.wrapper = {};
  if (::geteuid() != 0) {
    WARN("only root can make a folder that an ordinary user cannot search");
    return;
  }
  check("/../../root/state", "state-directory-not-searchable");
  fs::create_directory(folder / "roots");
  check("/roots/state", "state-directory-not-writable");
}

TEST_CASE("over the wire: the state directory becomes read-only after a session was made in it", "[unavailable]") {
  Surroundings where;
  where.user = ordinaryUser();
  where.state = "/mounted/state";
  const ScratchFolder folder(where.user);
  fs::create_directory(folder / "mounted");
  fs::permissions(folder / "mounted", fs::perms::all);
  REQUIRE(converse(folder, where, {kCreate})[0].contains("result"));
  where.wrapper = surroundings({"--write-protect", folder / "mounted"});
  checkUnavailable(folder, where, {"state-directory-not-writable"});
}

TEST_CASE("a command and a probe of a session whose bubblewrap went away say the same", "[unavailable]") {
  const ScratchFolder folder;
  fs::copy_file("/usr/bin/bwrap", folder / "bwrap");
  SidecarOptions options;
  options.startAs = startModes().front();
  options.arguments = {"--warm", "0", "--bwrap", folder / "bwrap"};
  Sidecar sidecar(options);
  const Session session(sidecar);
  CHECK(sidecar.call("handle.probe", {{"handle", session.handle()}})["grade"] == "full");
  fs::remove(folder / "bwrap");
  const Json error = sidecar.callError("session.run", session.commandParams({"/bin/true"}));
  CHECK(error["data"]["code"] == "SANDBOX_UNAVAILABLE");
  CHECK(error["data"]["reason"] == "bwrap-missing");
  const Json grade = sidecar.call("handle.probe", {{"handle", session.handle()}});
  CHECK(grade["grade"] == "unavailable");
  CHECK(grade["reason"] == "bwrap-missing: " + error["message"].get<std::string>());
}

}  // namespace
}  // namespace stitchkit::testing
