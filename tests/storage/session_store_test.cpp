#include "backend/storage/session_store.h"

#include "tests/storage/test_storage.h"

#include <optional>

using namespace stitchkit;
using namespace stitchkit::test;

namespace {

struct Backend {
  StateDirectory directory;
  SessionStore store{directory.layout()};
  std::string key = TemplateStore(directory.layout()).prewarm("t", kFiles).value().templateKey;

  /// A published session.
  [[nodiscard]] StoredSession make() const {
    StoredSession session = store.create(key).value();
    requireOk(session.publish());
    return session;
  }
  [[nodiscard]] Names sessions() const { return StateDirectory::listed(directory.area("sessions")); }
  [[nodiscard]] Names files(const std::string& id) const { return StateDirectory::listed(directory.sessionPath(id)); }
  [[nodiscard]] ErrorKind attachError(const SessionState& state) const {
    const Result<StoredSession> session = store.attach(state.templateKey, state);
    REQUIRE(session.has_error());
    return session.error().kind;
  }
};

const Names kLive{"lease", "state.json", "workspace"};
const Names kStopped{"state.json", "workspace"};

}  // namespace

TEST_CASE("a new session is a copy of its template, seen only when published") {
  const Backend backend;
  std::optional<StoredSession> session(backend.store.create(backend.key).value());
  const SessionState state = session->state();
  CHECK(state.backend == "bubblewrap");
  CHECK(state.templateKey == backend.key);
  CHECK(state.sessionId.size() == 64);
  CHECK(backend.sessions().empty());
  CHECK(readText(session->workspacePath() + "/a.txt") == "hello");
  requireOk(session->publish());
  CHECK(session->workspacePath() == backend.directory.sessionPath(state.sessionId) + "/workspace");
  CHECK(readText(session->workspacePath() + "/d/b.bin") == std::string("\0\1\2\377", 4));
  CHECK(modeOf(session->workspacePath()) == 0700);
  CHECK(modeOf(session->workspacePath() + "/a.txt") == 0600);
  CHECK(backend.files(state.sessionId) == kLive);
  CHECK(readText(backend.directory.sessionPath(state.sessionId) + "/state.json") ==
        R"({"backend":"bubblewrap","sessionId":")" + state.sessionId + R"(","templateKey":")" + backend.key + "\"}");
  requireOk(
      session->workspace().replaceFile(at("new/file"), "x", ContainedDirectory::Parents::kCreate, session->staging()));
  session->release();
  session->release();
  CHECK(backend.files(state.sessionId) == kStopped);
  session.reset();
  CHECK(backend.files(state.sessionId) == kStopped);
  CHECK(backend.directory.stagingIsEmpty());
}

TEST_CASE("a session that is not published leaves nothing") {
  const Backend backend;
  CHECK(backend.store.create(backend.key).has_value());
  CHECK(backend.store.create(std::string(64, 'a')).error().kind == ErrorKind::kStateMismatch);
  std::stop_source source;
  source.request_stop();
  CHECK(backend.store.create(backend.key, source.get_token()).error().kind == ErrorKind::kCancelled);
  CHECK(backend.sessions().empty());
  CHECK(backend.directory.stagingIsEmpty());
}

TEST_CASE("an owned session is busy, a stopped one is found again") {
  const Backend backend;
  std::optional<StoredSession> first(backend.make());
  const SessionState state = first->state();
  CHECK(backend.attachError(state) == ErrorKind::kBusy);
  CHECK(backend.files(state.sessionId) == kLive);
  first->release();
  std::optional<StoredSession> second(backend.store.attach(backend.key, state).value());
  CHECK(second->state() == state);
  CHECK(second->workspace().readFile(at("a.txt"), 100).value() == "hello");
  CHECK(backend.files(state.sessionId) == kLive);
  // The older handle neither frees nor deletes what the newer one owns.
  first->release();
  CHECK(backend.store.remove(state.sessionId, &*first).error().kind == ErrorKind::kBusy);
  first.reset();
  CHECK(backend.files(state.sessionId) == kLive);
  second.reset();
  CHECK(backend.files(state.sessionId) == kStopped);
}

TEST_CASE("a state that does not fit is refused, and nothing is made") {
  const Backend backend;
  const SessionState state = [&] { return backend.make().state(); }();
  const std::string place = backend.directory.sessionPath(state.sessionId);
  const auto with = [&](auto change) {
    SessionState changed = state;
    change(changed);
    return backend.attachError(changed);
  };
  CHECK(with([](auto& s) { s.backend = "other"; }) == ErrorKind::kStateMismatch);
  CHECK(with([](auto& s) { s.sessionId = std::string(64, 'b'); }) == ErrorKind::kStateMismatch);
  CHECK(with([](auto& s) { s.sessionId = "../" + s.sessionId; }) == ErrorKind::kStateMismatch);
  CHECK(with([](auto& s) { s.templateKey = std::string(64, 'c'); }) == ErrorKind::kStateMismatch);
  const std::string other = TemplateStore(backend.directory.layout()).prewarm("u", {}).value().templateKey;
  CHECK(with([&](auto& s) { s.templateKey = other; }) == ErrorKind::kStateMismatch);
  CHECK(backend.store.attach(other, state).error().kind == ErrorKind::kStateMismatch);
  const std::string text = readText(place + "/state.json");
  for (const std::string& broken : {std::string("{"), std::string(), std::string("[]"),
                                    text.substr(0, text.size() - 1) + ",\"x\":1}", std::string(100000, ' ') + text}) {
    writeText(place + "/state.json", broken);
    CHECK(backend.attachError(state) == ErrorKind::kStateMismatch);
  }
  CHECK(backend.sessions() == Names{state.sessionId});
  CHECK(backend.files(state.sessionId) == kStopped);
  CHECK(backend.directory.stagingIsEmpty());
  writeText(place + "/state.json", "{ \"templateKey\": \"" + state.templateKey + "\", \"sessionId\": \"" +
                                       state.sessionId + "\", \"backend\": \"bubblewrap\" }\n");
  CHECK(backend.store.attach(backend.key, state).has_value());
}

TEST_CASE("links in a session's place are refused") {
  const Backend backend;
  const SessionState state = [&] { return backend.make().state(); }();
  const std::string place = backend.directory.sessionPath(state.sessionId);
  const std::string aside = backend.directory.base / "aside";
  std::filesystem::rename(place + "/workspace", aside);
  std::filesystem::create_symlink(aside, place + "/workspace");
  CHECK(backend.attachError(state) == ErrorKind::kStateMismatch);
  std::filesystem::remove(place + "/workspace");
  CHECK(backend.attachError(state) == ErrorKind::kStateMismatch);
  std::filesystem::rename(aside, place + "/workspace");
  std::filesystem::rename(place, aside);
  std::filesystem::create_symlink(aside, place);
  CHECK(backend.attachError(state) == ErrorKind::kStateMismatch);
  CHECK(StateDirectory::listed(aside) == kStopped);
  CHECK(backend.directory.stagingIsEmpty());
}

TEST_CASE("deleting takes the session and leaves the template") {
  const Backend backend;
  std::optional<StoredSession> owned(backend.make());
  const std::string id = owned->state().sessionId;
  requireOk(backend.store.remove(id, &*owned));
  CHECK(backend.sessions().empty());
  requireOk(backend.store.remove(id, &*owned));
  owned.reset();

  StoredSession stopped = backend.make();
  stopped.release();
  requireOk(backend.store.remove(stopped.state().sessionId, &stopped));
  const SessionState forgotten = [&] { return backend.make().state(); }();
  requireOk(backend.store.remove(forgotten.sessionId, nullptr));
  requireOk(backend.store.remove(std::string(64, 'd'), nullptr));
  requireOk(backend.store.remove("../templates", nullptr));
  CHECK(backend.sessions().empty());
  CHECK(backend.attachError(forgotten) == ErrorKind::kStateMismatch);
  CHECK(TemplateStore(backend.directory.layout()).open(backend.key).has_value());
}

TEST_CASE("a cancelled deletion has deleted, and the sweep ends it") {
  const Backend backend;
  std::optional<StoredSession> owned(backend.make());
  std::stop_source source;
  source.request_stop();
  CHECK(backend.store.remove(owned->state().sessionId, &*owned, source.get_token()).error().kind ==
        ErrorKind::kCancelled);
  CHECK(backend.sessions().empty());
  owned.reset();
  CHECK_FALSE(backend.directory.stagingIsEmpty());
  sweepStaging(backend.directory.layout());
  CHECK(backend.directory.stagingIsEmpty());
}

TEST_CASE("a read-only state directory leaves nothing behind, and works when it is writable again") {
  const StateDirectory directory;
  handOver(directory.base.path());
  CHECK(asOrdinaryUser([&] {
          const std::string key = TemplateStore(directory.layout()).prewarm("t", kFiles).value().templateKey;
          const SessionStore store(directory.layout());
          for (const char* const area : {"staging", "sessions"}) {
            std::filesystem::create_directories(directory.area(area));
            std::filesystem::permissions(directory.area(area), std::filesystem::perms(0500));
            Result<StoredSession> refused = store.create(key);
            const Result<void> published = refused ? refused->publish() : Result<void>(refused.error());
            if (!published.has_error() || published.error().kind != ErrorKind::kInternal) {
              return 1;
            }
            std::filesystem::permissions(directory.area(area), std::filesystem::perms(0700));
          }
          if (!directory.stagingIsEmpty() || !StateDirectory::listed(directory.area("sessions")).empty()) {
            return 2;
          }
          Result<StoredSession> session = store.create(key);
          return session && session->publish() ? 0 : 3;
        }) == 0);
}

TEST_CASE("a session can be removed from a disk that it has filled, whoever owns it") {
  const TemporaryDirectory place;
  const int code = inChild([&] {
    if (!mountTmpfs(place.path(), "size=4m,nr_inodes=80")) {
      return 77;
    }
    const Layout layout(place / "state", "bubblewrap");
    const SessionStore store(layout);
    const std::string key = TemplateStore(layout).prewarm("t", kFiles).value().templateKey;
    for (const bool released : {false, true}) {
      StoredSession session = store.create(key).value();
      requireOk(session.publish());
      for (int number = 0; std::ofstream(session.workspacePath() + '/' + std::to_string(number)); ++number) {
      }
      if (!store.create(key).has_error()) {
        return 1;
      }
      if (released) {
        session.release();
      }
      if (!store.remove(session.state().sessionId, released ? nullptr : &session) ||
          exists(layout.namespaceDirectory() + "/sessions/" + session.state().sessionId)) {
        return 2;
      }
    }
    return store.create(key).has_value() ? 0 : 3;
  });
  CHECK(code == 0);  // 77: no mount namespaces here
}
