#include "backend/storage/stray_guests.h"

#include "tests/storage/test_storage.h"

#include <sys/prctl.h>
#include <sys/syscall.h>

#include <csignal>
#include <optional>

using namespace stitchkit;
using namespace stitchkit::test;

namespace {

/// Runs a guest in `workspace` that outlives us (no --die-with-parent): writes `started` there, then sleeps.
pid_t startGuest(const std::string& workspace) {
  return startChild([&] {
    ::execl("/usr/bin/bwrap", "bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
            "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev",
            "--bind", workspace.c_str(), "/workspace", "/bin/sh", "-c", "sleep 300 & touch /workspace/started; wait",
            nullptr);
    return 1;
  });
}

/// A child of ours that has not ended.
bool alive(pid_t process) {
  siginfo_t ended{};
  return ::waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0;
}

void awaitFile(const std::string& path) {
  for (int round = 0; round < 2000 && !exists(path); ++round) {
    ::usleep(5000);
  }
  REQUIRE(exists(path));
}

}  // namespace

TEST_CASE("a takeover ends the dead owner's guests before it answers") {
  const StateDirectory directory;
  const std::string key = TemplateStore(directory.layout()).prewarm("t", kFiles).value().templateKey;
  const SessionStore store(directory.layout());
  REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  int report[2];
  REQUIRE(::pipe2(report, O_CLOEXEC) == 0);
  const pid_t owner = startChild([&] {
    StoredSession session = store.create(key).value();
    session.publish().value();
    const std::string id = session.state().sessionId;
    const pid_t guest = startGuest(session.workspacePath());
    static_cast<void>(!::write(report[1], id.data(), id.size()));
    static_cast<void>(!::write(report[1], &guest, sizeof guest));
    for (;;) {
      ::pause();
    }
    return 0;
  });
  std::string id(64, '\0');
  pid_t guest = 0;
  REQUIRE(::read(report[0], id.data(), id.size()) == 64);
  REQUIRE(::read(report[0], &guest, sizeof guest) == sizeof guest);
  ::close(report[0]);
  ::close(report[1]);
  awaitFile(directory.sessionPath(id) + "/workspace/started");
  ::kill(owner, SIGKILL);
  waitFor(owner);
  CHECK(alive(guest));

  const SessionState state{"bubblewrap", id, key};
  const Result<StoredSession> session = store.attach(key, state);
  requireOk(session);
  // Only the monitor may still be there, about to notice that its guest is gone.
  const int code = waitFor(guest);
  CHECK(code == 128 + SIGKILL);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_CASE("other sessions' guests and processes of the host are left alone") {
  const StateDirectory directory;
  const std::string key = TemplateStore(directory.layout()).prewarm("t", kFiles).value().templateKey;
  const SessionStore store(directory.layout());
  StoredSession session = store.create(key).value();
  requireOk(session.publish());
  const pid_t guest = startGuest(session.workspacePath());
  awaitFile(session.workspacePath() + "/started");
  requireOk(endStrayGuests(std::string(64, 'e')));
  CHECK(alive(guest));
  // A process that merely works in the workspace.
  const pid_t host = startChild([&] {
    static_cast<void>(!::chdir(session.workspacePath().c_str()));
    ::pause();
    return 0;
  });
  requireOk(endStrayGuests(session.state().sessionId));
  CHECK(alive(host));
  ::kill(host, SIGKILL);
  waitFor(host);
  CHECK(waitFor(guest) == 128 + SIGKILL);
}
