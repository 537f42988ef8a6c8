#include "backend/storage/session_store.h"

#include "backend/storage/files.h"
#include "backend/storage/json_text.h"
#include "backend/storage/stray_guests.h"
#include "codingtools/copy_tree.h"
#include "codingtools/remove_tree.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace stitchkit {

namespace {

constexpr const char* kBuiltSession = "session";
constexpr const char* kStateFile = "state.json";
constexpr const char* kStateFileFromWorkspace = "../state.json";
constexpr const char* kWorkspace = "workspace";
constexpr std::size_t kStateBytes = 64UL * 1024;

Error mismatch(std::string message) {
  return Error(ErrorKind::kStateMismatch, std::move(message))
      .withHint("Use the state that this backend returned for this session, or create a new session without a state.");
}

StringMembers members(const SessionState& state) {
  return {{"backend", state.backend}, {"sessionId", state.sessionId}, {"templateKey", state.templateKey}};
}

Result<UniqueFd> duplicate(int directory) {
  UniqueFd copy(::fcntl(directory, F_DUPFD_CLOEXEC, 3));
  if (!copy) {
    return storageError(errno, "dup");
  }
  return copy;
}

struct Built {
  UniqueFd session;
  UniqueFd workspace;
};

/// Everything of a new session but its lease.
Result<Built> build(int staging, int data, const SessionState& state, const std::stop_token& stop) {
  if (Result<void> made = makeDirectory(staging, kBuiltSession); !made) {
    return made.error();
  }
  Result<UniqueFd> session = openOrMakeDirectory(staging, kBuiltSession);
  if (!session) {
    return session.error();
  }
  Result<UniqueFd> workspace = openOrMakeDirectory(session->get(), kWorkspace);
  if (!workspace) {
    return workspace.error();
  }
  if (Result<void> copied = copyTree(data, workspace->get(), stop); !copied) {
    return copied.error();
  }
  if (Result<void> written = writeNewFile(session->get(), kStateFile, writeStringObject(members(state))); !written) {
    return written.error();
  }
  return Built{std::move(*session), std::move(*workspace)};
}

/// Says in a published session that it is used now. Where that cannot be said (a read-only disk) it is older than it
/// could be, and has an owner all the same.
void noteUse(int workspace) noexcept {
  static_cast<void>(::utimensat(workspace, kStateFileFromWorkspace, nullptr, AT_SYMLINK_NOFOLLOW));
}

/// Opens a published session and checks that it is the one the state speaks of.
Result<Built> openSession(int sessions, const SessionState& state) {
  Result<std::optional<UniqueFd>> session = openDirectory(sessions, state.sessionId.c_str());
  if (!session) {
    return session.error();
  }
  if (!*session) {
    return mismatch("There is no such session");
  }
  const Result<std::optional<std::string>> text = readSmallFile((*session)->get(), kStateFile, kStateBytes);
  if (!text) {
    return text.error();
  }
  if (!*text || !isStringObject(**text, members(state))) {
    return mismatch("The session's saved state is not the given one");
  }
  Result<std::optional<UniqueFd>> workspace = openDirectory((*session)->get(), kWorkspace);
  if (!workspace) {
    return workspace.error();
  }
  if (!*workspace) {
    return mismatch("The session has no workspace");
  }
  return Built{std::move(**session), std::move(**workspace)};
}

/// Takes the lease and makes sure that it is worth something: the session was not removed meanwhile, and no guest of a
/// dead owner is left.
Result<Lease> takeLease(int sessions, const std::string& sessionId, int session, int staging) {
  Result<Lease> lease = Lease::acquire(session, staging);
  if (!lease && lease.error().kind != ErrorKind::kInternal) {
    return lease;
  }
  // A directory that was removed takes no lease, and says so in its own way.
  if (!names(sessions, sessionId.c_str(), session)) {
    return mismatch("There is no such session");
  }
  if (!lease) {
    return lease;
  }
  if (lease->tookOver()) {
    if (Result<void> ended = endStrayGuests(sessionId); !ended) {
      lease->abandon();
      return ended.error();
    }
  }
  return lease;
}

/// The lease for a removal, also where the disk is full.
Result<Lease> leaseForRemoval(const Layout& layout, int sessions, const std::string& sessionId, int session) {
  const Result<StagingEntry> staging = StagingEntry::make(layout);
  Result<Lease> lease =
      staging ? takeLease(sessions, sessionId, session, staging->descriptor()) : Result<Lease>(staging.error());
  if (lease || lease.error().kind != ErrorKind::kLimit) {
    return lease;
  }
  Result<Lease> claimed = Lease::claim(session);
  if (claimed && claimed->tookOver()) {
    if (Result<void> ended = endStrayGuests(sessionId); !ended) {
      return std::move(ended).error();
    }
  }
  return claimed;
}

}  // namespace

// The directory changes when a lease comes or goes, whoever's program that is; `state.json` is touched by us.
std::time_t lastUseOf(int directory) {
  struct stat status {};
  const std::time_t changed = ::fstat(directory, &status) == 0 ? status.st_mtime : 0;
  return std::max(changed, useStampOf(directory).tv_sec);
}

timespec useStampOf(int directory) {
  struct stat status {};
  return ::fstatat(directory, kStateFile, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status.st_mtim : timespec{};
}

void StoredSession::release() noexcept {
  if (lease_.held() && published_) {
    noteUse(workspace_.descriptor());
  }
  lease_.release();
}

std::string StoredSession::workspacePath() const {
  return (published_ ? layout_.namespaceDirectory() + "/sessions/" + state_.sessionId : staging_.path() + "/session") +
         "/workspace";
}

Result<void> StoredSession::publish() {
  if (published_) {
    return {};
  }
  Result<UniqueFd> sessions = layout_.openOrMake(Layout::Area::kSessions);
  if (!sessions) {
    return sessions.error();
  }
  const Durability& durability = stagingDirectory_->durability();
  if (const int error = durability.settleTree(staging_.descriptor()); error != 0) {
    return storageError(error, "sync session");
  }
  if (const int error = renameNew(staging_.descriptor(), kBuiltSession, sessions->get(), state_.sessionId.c_str());
      error != 0) {
    return storageError(error, "publish session");
  }
  if (const int error = durability.settleEntries(sessions->get(), staging_.descriptor()); error != 0) {
    static_cast<void>(renameNew(sessions->get(), state_.sessionId.c_str(), staging_.descriptor(), kBuiltSession));
    return storageError(error, "sync sessions");
  }
  published_ = true;
  return {};
}

Result<StoredSession> SessionStore::create(const std::string& templateKey, const std::stop_token& stop) const {
  const Result<UniqueFd> data = templates_.open(templateKey);
  if (!data) {
    return data.error();
  }
  Result<StagingEntry> staging = StagingEntry::make(layout_);
  if (!staging) {
    return staging.error();
  }
  SessionState state{layout_.backendName(), randomName(), templateKey};
  Result<Built> built = build(staging->descriptor(), data->get(), state, stop);
  if (!built) {
    return built.error();
  }
  Result<Lease> lease = Lease::acquire(built->session.get(), staging->descriptor());
  if (!lease) {
    return lease.error();
  }
  Result<UniqueFd> stagingDirectory = duplicate(staging->descriptor());
  Result<ContainedDirectory> workspace = ContainedDirectory::adopt(std::move(built->workspace));
  if (!stagingDirectory || !workspace) {
    return stagingDirectory ? workspace.error() : stagingDirectory.error();
  }
  return StoredSession(layout_, std::move(state), std::move(*staging), std::move(*stagingDirectory), durability_,
                       std::move(*workspace), std::move(*lease), false);
}

Result<StoredSession> SessionStore::attach(const std::string& templateKey, const SessionState& state) const {
  if (state.backend != layout_.backendName()) {
    return mismatch("The state belongs to another backend");
  }
  if (state.templateKey != templateKey || !isHexName(state.sessionId)) {
    return mismatch("The state belongs to another template or session");
  }
  if (const Result<UniqueFd> data = templates_.open(templateKey); !data) {
    return data.error();
  }
  const Result<std::optional<UniqueFd>> sessions = layout_.open(Layout::Area::kSessions);
  if (!sessions) {
    return sessions.error();
  }
  if (!*sessions) {
    return mismatch("There is no such session");
  }
  Result<Built> found = openSession((*sessions)->get(), state);
  if (!found) {
    return found.error();
  }
  Result<StagingEntry> staging = StagingEntry::make(layout_);
  if (!staging) {
    return staging.error();
  }
  Result<UniqueFd> stagingDirectory = duplicate(staging->descriptor());
  Result<ContainedDirectory> workspace = ContainedDirectory::adopt(std::move(found->workspace));
  if (!stagingDirectory || !workspace) {
    return stagingDirectory ? workspace.error() : stagingDirectory.error();
  }
  Result<Lease> lease = takeLease((*sessions)->get(), state.sessionId, found->session.get(), staging->descriptor());
  if (!lease) {
    return lease.error();
  }
  noteUse(workspace->descriptor());
  return StoredSession(layout_, state, std::move(*staging), std::move(*stagingDirectory), durability_,
                       std::move(*workspace), std::move(*lease), true);
}

// Nothing new is made on the disk: deleting is what helps when it is full.
Result<void> SessionStore::removeSession(int sessions, const std::string& sessionId, int session, bool leaseHeld,
                                         const std::stop_token& stop) const {
  const Result<UniqueFd> area = layout_.openOrMake(Layout::Area::kStaging);
  if (!area) {
    return area.error();
  }
  // Held until all is gone, so that no sweeper takes up what may have to be put back.
  static_cast<void>(::flock(session, LOCK_EX | LOCK_NB));
  // From here on the session does not exist; a kill leaves only work for the sweeper.
  const std::string doomed = randomName();
  if (const int error = renameNew(sessions, sessionId.c_str(), area->get(), doomed.c_str());
      error != 0 && error != ENOENT) {
    return storageError(error, "remove session");
  }
  // Whoever acquired the lease before it was moved away believes to own it.
  if (!leaseHeld) {
    if (const Result<Lease> free = Lease::claim(session); !free) {
      static_cast<void>(renameNew(area->get(), doomed.c_str(), sessions, sessionId.c_str()));
      return free.error();
    }
  }
  if (const int error = durability_.settleEntries(sessions, session); error != 0) {
    return storageError(error, "sync sessions");
  }
  if (const Result<void> removed = removeEntry(area->get(), doomed.c_str(), stop); !removed) {
    return removed.error().kind == ErrorKind::kCancelled
               ? removed.error()
               : storageError(removed.error(), "remove " + layout_.namespaceDirectory() + "/staging/" + doomed);
  }
  return {};
}

/// Its directory in `sessions`, which is opened, too; none of both when it is not there.
struct SessionStore::Found {
  std::optional<UniqueFd> sessions;
  std::optional<UniqueFd> session;
};

Result<SessionStore::Found> SessionStore::find(const std::string& sessionId) const {
  Result<std::optional<UniqueFd>> sessions = layout_.open(Layout::Area::kSessions);
  if (!sessions) {
    return sessions.error();
  }
  if (!*sessions || !isHexName(sessionId)) {
    return Found{};
  }
  Result<std::optional<UniqueFd>> session = openDirectory((*sessions)->get(), sessionId.c_str());
  if (!session) {
    return session.error();
  }
  return Found{std::move(*sessions), std::move(*session)};
}

Result<void> SessionStore::remove(const std::string& sessionId, StoredSession* owned,
                                  const std::stop_token& stop) const {
  if (owned == nullptr || !owned->lease_.held()) {
    const Result<bool> removed = removeIf(
        sessionId, [](int, bool) { return true; }, stop);
    return removed ? Result<void>() : Result<void>(removed.error());
  }
  const Result<Found> found = find(sessionId);
  if (!found) {
    return found.error();
  }
  if (!found->session) {
    return {};
  }
  if (Result<void> removed = removeSession(found->sessions->get(), sessionId, found->session->get(), true, stop);
      !removed) {
    return removed;
  }
  owned->lease_.release();
  return {};
}

Result<bool> SessionStore::removeIf(const std::string& sessionId, const Agreement& agree,
                                    const std::stop_token& stop) const {
  const Result<Found> found = find(sessionId);
  if (!found) {
    return found.error();
  }
  if (!found->session) {
    return true;
  }
  const int session = found->session->get();
  const Result<Lease> lease = leaseForRemoval(layout_, found->sessions->get(), sessionId, session);
  if (!lease) {
    const bool gone = lease.error().kind == ErrorKind::kStateMismatch;
    return gone ? Result<bool>(true) : Result<bool>(lease.error());
  }
  if (!agree(session, lease->tookOver())) {
    return false;
  }
  if (Result<void> removed = removeSession(found->sessions->get(), sessionId, session, lease->held(), stop); !removed) {
    return removed.error();
  }
  return true;
}

}  // namespace stitchkit
