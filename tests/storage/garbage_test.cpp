// What goes and what stays: leftovers, sessions nobody can attach, sessions not used for a time, and those with an
// owner.
#include "backend/storage/garbage.h"

#include "tests/storage/test_storage.h"

#include <csignal>
#include <ctime>
#include <optional>
#include <thread>

using namespace stitchkit;
using namespace stitchkit::test;

namespace {

using namespace std::chrono_literals;
using Outcome = GarbageItem::Outcome;
using Kind = GarbageItem::Kind;

constexpr std::chrono::seconds kMonth = 24h * 30;

struct AgedBackend {
  StateDirectory directory;
  SessionStore store{directory.layout()};
  std::string key = TemplateStore(directory.layout()).prewarm("t", kFiles).value().templateKey;

  [[nodiscard]] StoredSession make() const {
    StoredSession session = store.create(key).value();
    requireOk(session.publish());
    return session;
  }
  /// A session that was stopped, so long ago.
  [[nodiscard]] SessionState stopped(std::chrono::seconds ago) const {
    StoredSession session = make();
    session.release();
    age(session.state().sessionId, ago);
    return session.state();
  }
  /// A session whose owner died, so long ago.
  [[nodiscard]] SessionState abandoned(std::chrono::seconds ago) const {
    StoredSession session = make();
    session.abandon();
    age(session.state().sessionId, ago);
    return session.state();
  }
  void age(const std::string& id, std::chrono::seconds ago) const {
    const std::string path = directory.sessionPath(id);
    const timespec then{std::time(nullptr) - ago.count(), 0};
    const timespec times[2] = {then, then};
    for (const std::string& one : {path + "/state.json", path}) {
      if (exists(one)) {
        REQUIRE(::utimensat(AT_FDCWD, one.c_str(), times, 0) == 0);
      }
    }
  }
  [[nodiscard]] bool has(const std::string& id) const { return exists(directory.sessionPath(id)); }
};

std::vector<GarbageItem> collect(const AgedBackend& backend, std::optional<std::chrono::seconds> olderThan = {},
                                 bool dryRun = false) {
  std::vector<GarbageItem> items;
  requireOk(collectGarbage({backend.directory.base / "state", std::nullopt, olderThan, dryRun},
                           [&items](const GarbageItem& item) { items.push_back(item); }));
  return items;
}

GarbageItem only(const std::vector<GarbageItem>& items) {
  REQUIRE(items.size() == 1);
  return items.front();
}

std::string only(const std::vector<GarbageItem>& items, Outcome outcome) {
  const GarbageItem item = only(items);
  CHECK(nameOf(item.outcome) == nameOf(outcome));
  return item.reason;
}

}  // namespace

TEST_CASE("without an age a session that could be attached stays, however old") {
  const AgedBackend backend;
  const SessionState state = backend.stopped(kMonth * 100);
  const GarbageItem item = only(collect(backend));
  CHECK(item.outcome == Outcome::kKept);
  CHECK(item.reason == "no-age");
  CHECK(item.kind == Kind::kSession);
  CHECK(item.backend == "bubblewrap");
  CHECK(item.name == state.sessionId);
  CHECK(std::time(nullptr) - item.lastUse.value() >= (kMonth * 100).count());
  requireOk(backend.store.attach(backend.key, state));
}

TEST_CASE("with an age what was not used for so long goes, with what it holds, and nothing else") {
  const AgedBackend backend;
  const SessionState old = backend.stopped(kMonth + 1s);
  const SessionState recent = backend.stopped(kMonth - 60s);
  const std::string outside = backend.directory.base / "outside";
  writeText(outside, "mine");
  std::filesystem::create_symlink(outside, backend.directory.sessionPath(old.sessionId) + "/workspace/link");
  std::filesystem::create_directory(backend.directory.sessionPath(old.sessionId) + "/workspace/closed");
  writeText(backend.directory.sessionPath(old.sessionId) + "/workspace/closed/f", "x");
  REQUIRE(::chmod((backend.directory.sessionPath(old.sessionId) + "/workspace/closed").c_str(), 0) == 0);
  backend.age(old.sessionId, kMonth + 1s);

  for (const GarbageItem& item : collect(backend, kMonth, true)) {
    CHECK(item.outcome == (item.name == old.sessionId ? Outcome::kWouldRemove : Outcome::kKept));
  }
  CHECK(backend.has(old.sessionId));
  for (const GarbageItem& item : collect(backend, kMonth)) {
    CHECK(item.outcome == (item.name == old.sessionId ? Outcome::kRemoved : Outcome::kKept));
    CHECK(item.reason == (item.name == old.sessionId ? "unused" : "used"));
  }
  CHECK_FALSE(backend.has(old.sessionId));
  CHECK(backend.has(recent.sessionId));
  CHECK(backend.directory.stagingIsEmpty());
  CHECK(readText(outside) == "mine");
  CHECK(exists(backend.directory.templatePath(backend.key) + "/ready"));
}

TEST_CASE("attaching and stopping are uses, looking is none") {
  const AgedBackend backend;
  const SessionState state = backend.stopped(kMonth * 2);
  const std::string path = backend.directory.sessionPath(state.sessionId);
  CHECK(only(collect(backend, kMonth, true), Outcome::kWouldRemove) == "unused");
  {
    StoredSession session = backend.store.attach(backend.key, state).value();
    backend.age(state.sessionId, kMonth * 2);
    CHECK(only(collect(backend, kMonth), Outcome::kKept) == "owned");
    session.release();
  }
  CHECK(only(collect(backend, kMonth), Outcome::kKept) == "used");
  CHECK(std::time(nullptr) - useStampOf(UniqueFd(::open(path.c_str(), O_PATH | O_CLOEXEC)).get()).tv_sec < 3600);
}

TEST_CASE("a session with an owner stays whatever its age, and one whose owner died counts as used when that is seen") {
  const AgedBackend backend;
  std::optional<StoredSession> owned(backend.make());
  backend.age(owned->state().sessionId, kMonth * 9);
  CHECK(only(collect(backend, 0s), Outcome::kKept) == "owned");
  CHECK(only(collect(backend, 0s, true), Outcome::kKept) == "owned");
  CHECK(backend.has(owned->state().sessionId));
  requireOk(backend.store.remove(owned->state().sessionId, &*owned));
  owned.reset();

  const SessionState left = backend.abandoned(kMonth * 9);
  CHECK(only(collect(backend, kMonth, true), Outcome::kKept) == "owner-died");
  CHECK(exists(backend.directory.sessionPath(left.sessionId) + "/lease"));
  CHECK(only(collect(backend, kMonth), Outcome::kKept) == "owner-died");
  CHECK_FALSE(exists(backend.directory.sessionPath(left.sessionId) + "/lease"));
  CHECK(only(collect(backend, kMonth), Outcome::kKept) == "used");
  backend.age(left.sessionId, kMonth);
  CHECK(only(collect(backend, kMonth), Outcome::kRemoved) == "unused");
}

TEST_CASE("no age at all takes what a dead owner left, too") {
  const AgedBackend backend;
  const SessionState left = backend.abandoned(0s);
  CHECK(only(collect(backend, 0s, true), Outcome::kWouldRemove) == "unused");
  CHECK(only(collect(backend, 0s), Outcome::kRemoved) == "unused");
  CHECK_FALSE(backend.has(left.sessionId));
}

TEST_CASE("a lease of another program is left alone and told of") {
  const AgedBackend backend;
  const SessionState state = backend.stopped(kMonth * 2);
  writeText(backend.directory.sessionPath(state.sessionId) + "/lease", "1234\n");
  backend.age(state.sessionId, kMonth * 2);
  for (const bool dryRun : {true, false}) {
    CHECK(only(collect(backend, kMonth, dryRun), Outcome::kKept) == "foreign-lease");
  }
  CHECK(readText(backend.directory.sessionPath(state.sessionId) + "/lease") == "1234\n");
}

TEST_CASE(
    "artifacts of no session go by themselves once they are not new, and a workspace without a state by its age") {
  const AgedBackend backend;
  const SessionState state = backend.stopped(0s);
  const std::string path = backend.directory.sessionPath(state.sessionId);
  std::filesystem::create_directory(path + "/artifacts");
  writeText(path + "/artifacts/1", "{}\nkept");
  std::filesystem::remove(path + "/state.json");
  CHECK(only(collect(backend)).kind == Kind::kDamaged);
  CHECK(only(collect(backend), Outcome::kKept) == "no-age");

  std::filesystem::rename(path + "/workspace", backend.directory.base / "away");
  CHECK(only(collect(backend)).kind == Kind::kOrphan);
  CHECK(only(collect(backend), Outcome::kKept) == "used");
  backend.age(state.sessionId, 2h);
  CHECK(only(collect(backend, {}, true), Outcome::kWouldRemove) == "orphan");
  std::filesystem::rename(backend.directory.base / "away", path + "/workspace");
  backend.age(state.sessionId, kMonth);
  CHECK(only(collect(backend), Outcome::kKept) == "no-age");
  CHECK(only(collect(backend, kMonth, true), Outcome::kWouldRemove) == "unused");
  std::filesystem::remove_all(path + "/workspace");
  backend.age(state.sessionId, 2h);
  CHECK(only(collect(backend), Outcome::kRemoved) == "orphan");
  CHECK_FALSE(backend.has(state.sessionId));
}

TEST_CASE("what a dead owner left half done goes; what an owner is at stays") {
  const AgedBackend backend;
  std::optional<StagingEntry> owned(StagingEntry::make(backend.directory.layout()).value());
  std::string left;
  {
    StagingEntry entry = StagingEntry::make(backend.directory.layout()).value();
    writeText(entry.path() + "/gateway.sock", "x");
    left = entry.path();
    entry.leaveToSweeper();
  }
  CHECK(only(collect(backend, {}, true), Outcome::kWouldRemove) == "leftover");
  CHECK(exists(left));
  CHECK(only(collect(backend), Outcome::kRemoved) == "leftover");
  CHECK_FALSE(exists(left));
  CHECK(exists(owned->path()));
  CHECK(collect(backend).empty());
}

TEST_CASE("each backend of a state directory, or one; what is not ours is no garbage; no directory holds none") {
  const AgedBackend backend;
  static_cast<void>(backend.stopped(kMonth));
  const Layout other(backend.directory.base / "state", "other");
  const std::string key = TemplateStore(other).prewarm("t", kFiles).value().templateKey;
  {
    StoredSession session = SessionStore(other).create(key).value();
    requireOk(session.publish());
    session.release();
  }
  std::filesystem::create_directories(backend.directory.base / "state/support/x");
  writeText(backend.directory.base / "state/notes", "x");
  writeText(backend.directory.area("sessions") + "/notes", "x");
  CHECK(collect(backend).size() == 2);
  std::vector<GarbageItem> items;
  requireOk(collectGarbage({backend.directory.base / "state", "other", 0s, false},
                           [&](const GarbageItem& item) { items.push_back(item); }));
  CHECK(only(items).backend == "other");
  CHECK(only(items, Outcome::kRemoved) == "unused");
  CHECK(collect(backend).size() == 1);
  CHECK(exists(backend.directory.area("sessions") + "/notes"));
  requireOk(collectGarbage({backend.directory.base / "nowhere", {}, {}, false}, [](const GarbageItem&) { FAIL(); }));
  CHECK(collectGarbage({backend.directory.base / "state/notes", {}, {}, false}, [](const GarbageItem&) {}).has_error());
}

TEST_CASE("collecting beside owners at work never loses a session that has one") {
  const AgedBackend backend;
  std::atomic<bool> done{false};
  std::atomic<int> removed{0};
  std::jthread collector([&] {
    while (!done) {
      static_cast<void>(collectGarbage({backend.directory.base / "state", {}, 0s, false}, [&](const GarbageItem& item) {
        removed += item.outcome == Outcome::kRemoved && item.kind == Kind::kSession ? 1 : 0;
      }));
    }
  });
  std::vector<std::string> lost;
  int reattached = 0;
  for (int round = 0; round < 200; ++round) {
    StoredSession session = backend.make();
    const SessionState state = session.state();
    const std::string workspace = backend.directory.sessionPath(state.sessionId) + "/workspace/";
    if (readText(workspace + "a.txt") != "hello") {
      lost.emplace_back("a new session");
    }
    writeText(workspace + "x", "x");
    round % 2 == 0 ? session.release() : session.abandon();
    // From here on nobody has it: it may go, and whoever attaches it in time keeps it.
    const Result<StoredSession> again = backend.store.attach(state.templateKey, state);
    if (again) {
      ++reattached;
      if (readText(workspace + "x") != "x") {
        lost.emplace_back("an attached session");
      }
    } else if (again.error().kind != ErrorKind::kBusy && again.error().kind != ErrorKind::kStateMismatch) {
      lost.push_back(again.error().message + " " + again.error().privateDetail);
    }
  }
  done = true;
  collector.join();
  CAPTURE(reattached, removed);
  CHECK(lost == std::vector<std::string>());
  CHECK(reattached > 0);
  CHECK(removed > 0);
}
