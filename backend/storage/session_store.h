// Sessions on disk: made aside, published by one rename, owned through a lease, removed by one rename.
#pragma once

#include "backend/storage/layout.h"
#include "backend/storage/lease.h"
#include "backend/storage/staging.h"
#include "backend/storage/template_store.h"
#include "codingtools/contained_directory.h"
#include "rpc/base/error.h"

#include <sys/types.h>

#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace stitchkit {

/// What a host keeps to find its session again (PROTOCOL.md, section 4).
struct SessionState {
  std::string backend;
  std::string sessionId;
  std::string templateKey;

  friend bool operator==(const SessionState&, const SessionState&) = default;
};

/// A session that is owned: workspace, lease, and a staging directory of its own. Const members are thread-safe; the
/// others, and the end of the object, need the caller to see to it that nobody else uses it meanwhile.
class StoredSession {
 public:
  StoredSession(StoredSession&&) noexcept = default;
  StoredSession& operator=(StoredSession&&) = delete;
  StoredSession(const StoredSession&) = delete;
  StoredSession& operator=(const StoredSession&) = delete;
  /// A new session that was not published is removed whole; else release().
  ~StoredSession() = default;

  [[nodiscard]] const SessionState& state() const noexcept { return state_; }
  [[nodiscard]] const ContainedDirectory& workspace() const noexcept { return workspace_; }
  /// For ContainedDirectory::replaceFile.
  [[nodiscard]] StagingDirectory& staging() const noexcept { return *stagingDirectory_; }
  /// A directory of this owner's, beside what is durable: gone with this object, swept when the owner was killed.
  [[nodiscard]] std::string stagingPath() const { return staging_.path(); }
  /// The workspace's path on the host. It changes with publish().
  [[nodiscard]] std::string workspacePath() const;

  /// Makes a new session visible: to be called when its isolation is proven. Nothing to do for an attached one.
  [[nodiscard]] Result<void> publish();
  /// Frees the lease and keeps the workspace; for when no guest is left. Idempotent. Only state(),
  /// SessionStore::remove() and the destructor are of use afterwards.
  void release() noexcept;
  /// Frees the lease as a dead owner would, for when guests may be left: the next owner ends them.
  void abandon() noexcept { lease_.abandon(); }

 private:
  friend class SessionStore;
  StoredSession(Layout layout, SessionState state, StagingEntry staging, UniqueFd stagingDirectory,
                Durability durability, ContainedDirectory workspace, Lease lease, bool published)
      : layout_(std::move(layout)),
        state_(std::move(state)),
        staging_(std::move(staging)),
        stagingDirectory_(std::make_unique<StagingDirectory>(std::move(stagingDirectory), durability)),
        workspace_(std::move(workspace)),
        lease_(std::move(lease)),
        published_(published) {}

  Layout layout_;
  SessionState state_;
  StagingEntry staging_;
  std::unique_ptr<StagingDirectory> stagingDirectory_;
  ContainedDirectory workspace_;
  Lease lease_;  ///< freed before the staging directory goes
  bool published_;
};

/// When a session was last attached or stopped by a program of this layout: seconds since the epoch. `directory` is the
/// session's. Whatever takes a lease or frees it changes this; guests cannot.
std::time_t lastUseOf(int directory);
/// The part of it that taking and freeing a lease does not change by itself; 0 when there is none.
timespec useStampOf(int directory);

/// Thread-safe, and safe beside other processes on the same state directory. Blocks on the disk.
class SessionStore {
 public:
  explicit SessionStore(const Layout& layout, Durability durability = {})
      : layout_(layout), durability_(durability), templates_(layout, durability) {}

  /// A new session with the template's files, owned and not yet published. kStateMismatch for an unknown template;
  /// kLimit with reason "storage"; kCancelled. Whatever fails, nothing is left behind.
  [[nodiscard]] Result<StoredSession> create(const std::string& templateKey, const std::stop_token& stop = {}) const;

  /// Owns an existing session again; guests of a dead owner are ended first. kStateMismatch when the state is not of
  /// this backend, this template or a session that is there; kBusy when somebody else owns it. Failing changes nothing.
  [[nodiscard]] Result<StoredSession> attach(const std::string& templateKey, const SessionState& state) const;

  /// Removes a session's files, never the template. `owned` is the caller's object for it, released or not, or nullptr;
  /// when released (and for nullptr) the lease is taken again: kBusy when somebody else has it. A session that is gone
  /// is fine. Works on a full disk. After kCancelled and failures the files are out of sight, and the next start of a
  /// backend removes them.
  [[nodiscard]] Result<void> remove(const std::string& sessionId, StoredSession* owned,
                                    const std::stop_token& stop = {}) const;

  /// Asked with the lease of the session held, so that nobody uses it: its directory, and whether the former owner died
  /// without stopping.
  using Agreement = std::function<bool(int session, bool ownerDied)>;
  /// As remove() of a session that is nobody's here, if `agree` says so. Whether it did; true for one that is gone.
  [[nodiscard]] Result<bool> removeIf(const std::string& sessionId, const Agreement& agree,
                                      const std::stop_token& stop = {}) const;

 private:
  struct Found;
  [[nodiscard]] Result<Found> find(const std::string& sessionId) const;
  Result<void> removeSession(int sessions, const std::string& sessionId, int session, bool leaseHeld,
                             const std::stop_token& stop) const;

  Layout layout_;
  Durability durability_;
  TemplateStore templates_;
};

}  // namespace stitchkit
