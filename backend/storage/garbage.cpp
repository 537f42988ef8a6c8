#include "backend/storage/garbage.h"

#include "backend/storage/files.h"
#include "backend/storage/json_text.h"
#include "backend/storage/layout.h"
#include "backend/storage/lease.h"
#include "backend/storage/session_store.h"
#include "backend/storage/staging.h"
#include "codingtools/contained_open.h"
#include "codingtools/directory_reader.h"
#include "rpc/base/sha256.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

namespace stitchkit {

namespace {

constexpr std::size_t kSmallFileBytes = 64UL * 1024;
/// Somebody else's program may make a session in its place, piece by piece; one that is younger is left to it.
constexpr std::chrono::hours kOrphanAge{1};

using Kind = GarbageItem::Kind;
using Outcome = GarbageItem::Outcome;
using Report = std::function<void(const GarbageItem&)>;

bool sameInstant(const timespec& one, const timespec& other) {
  return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

/// The entries of an open directory, in order.
Result<std::vector<std::string>> entriesOf(int directory) {
  std::vector<std::string> entries;
  DirectoryReader reader;
  int error = reader.start(directory);
  while (const DirectoryReader::Entry* const entry = error == 0 ? reader.next() : nullptr) {
    entries.emplace_back(entry->name);
  }
  error = error == 0 ? reader.error() : error;
  if (error != 0) {
    return storageError(error, "read directory");
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

/// What the session's own file says.
std::string savedState(int session) {
  auto text = readSmallFile(session, "state.json", kSmallFileBytes);
  return text && *text ? std::move(**text) : std::string();
}

Kind kindOf(int session, const std::string& id, std::string_view namespaceName) {
  const Result<std::optional<UniqueFd>> workspace = openDirectory(session, "workspace");
  if (workspace && !*workspace) {
    return Kind::kOrphan;
  }
  const std::string state = savedState(session);
  const bool fits =
      stringMember(state, "sessionId") == id && sha256Hex(stringMember(state, "backend")) == namespaceName;
  return fits ? Kind::kSession : Kind::kDamaged;
}

GarbageItem failed(GarbageItem item, const Error& error) {
  item.outcome = Outcome::kFailed;
  item.reason = "failed";
  item.failure = error.privateDetail.empty() ? error.message : error.privateDetail;
  return item;
}

/// What dead owners left where things are half done. `backend`: whose that is, where it is known.
void collectLeftovers(const WorkArea& area, const std::string& backend, const GarbageOptions& options,
                      const Report& report, const std::stop_token& stop) {
  const Result<std::vector<StagingLook>> found = lookAtWork(area);
  if (!found) {
    const std::string name = area.path.substr(area.path.rfind('/') + 1);
    report(failed({.kind = Kind::kLeftover, .backend = backend, .name = name}, found.error()));
    return;
  }
  for (const StagingLook& look : *found) {
    if (stop.stop_requested()) {
      return;
    }
    // What somebody is at is no garbage, and nothing to tell of.
    if (look.owned) {
      continue;
    }
    GarbageItem item{.kind = Kind::kLeftover, .reason = "leftover", .backend = backend, .name = look.name};
    const Result<Swept> swept = options.dryRun ? Swept::kRemoved : sweepWork(area, look.name, stop);
    if (!swept) {
      report(failed(std::move(item), swept.error()));
    } else if (*swept == Swept::kRemoved) {
      item.outcome = options.dryRun ? Outcome::kWouldRemove : Outcome::kRemoved;
      report(item);
    }
  }
}

/// One backend's directory.
class Collector {
 public:
  Collector(const GarbageOptions& options, const std::string& directoryName, const Report& report,
            const std::stop_token& stop)
      : options_(options),
        directoryName_(directoryName),
        layout_(Layout::ofDirectory(options.stateDirectory, directoryName)),
        store_(layout_),
        report_(report),
        stop_(stop) {}

  void run() {
    collectSessions();
    collectLeftovers(WorkArea::staging(layout_), backend_, options_, report_, stop_);
  }

 private:
  void collectSessions() {
    const Result<std::optional<UniqueFd>> sessions = layout_.open(Layout::Area::kSessions);
    const Result<std::vector<std::string>> names = !sessions   ? Result<std::vector<std::string>>(sessions.error())
                                                   : *sessions ? entriesOf((*sessions)->get())
                                                               : std::vector<std::string>();
    if (!names) {
      fail({.name = "sessions"}, names.error());
      return;
    }
    for (const std::string& id : *names) {
      if (stop_.stop_requested()) {
        return;
      }
      if (isHexName(id)) {
        collectSession((*sessions)->get(), id);
      }
    }
  }

  void collectSession(int sessions, const std::string& id) {
    const Result<std::optional<UniqueFd>> session = openDirectory(sessions, id.c_str());
    if (session && !*session) {
      return;  // gone meanwhile
    }
    GarbageItem item{.name = id};
    if (!session) {
      fail(std::move(item), session.error());
      return;
    }
    const int directory = (*session)->get();
    item.kind = kindOf(directory, id, directoryName_);
    item.backend = stringMember(savedState(directory), "backend");
    backend_ = item.kind == Kind::kSession ? item.backend : backend_;
    item.lastUse = lastUseOf(directory);
    const timespec stamp = useStampOf(directory);
    item.reason = reasonToKeep(directory, item);
    if (item.reason.empty()) {
      removeSession(std::move(item), stamp);
    } else {
      report_(item);
    }
  }

  /// "" for a session that may go.
  [[nodiscard]] std::string reasonToKeep(int session, const GarbageItem& item) const {
    const Lease::Holder holder = Lease::look(session);
    if (holder == Lease::Holder::kOwner) {
      return "owned";
    }
    if (holder == Lease::Holder::kForeign) {
      return "foreign-lease";
    }
    if (item.kind == Kind::kOrphan) {
      return olderThan(*item.lastUse, kOrphanAge) ? "" : "used";
    }
    if (!options_.olderThan) {
      return "no-age";
    }
    if (!olderThan(*item.lastUse, *options_.olderThan)) {
      return "used";
    }
    return options_.dryRun && holder == Lease::Holder::kDeadOwner && !usedNowIsOld() ? "owner-died" : "";
  }

  static bool olderThan(std::time_t lastUse, std::chrono::seconds age) {
    return std::chrono::seconds(std::time(nullptr) - lastUse) >= age;
  }
  [[nodiscard]] bool usedNowIsOld() const { return options_.olderThan && options_.olderThan->count() <= 0; }

  void removeSession(GarbageItem item, const timespec& stamp) {
    const std::string reason = item.kind == Kind::kOrphan ? "orphan" : "unused";
    if (options_.dryRun) {
      item.outcome = Outcome::kWouldRemove;
      item.reason = reason;
      report_(item);
      return;
    }
    const auto mayGo = [&](int session, bool ownerDied) {
      if (item.kind == Kind::kOrphan) {
        return kindOf(session, item.name, directoryName_) == Kind::kOrphan;
      }
      item.reason = ownerDied ? "owner-died" : "used";
      return ownerDied ? usedNowIsOld() : sameInstant(useStampOf(session), stamp);
    };
    const Result<bool> removed = store_.removeIf(item.name, mayGo, stop_);
    if (!removed && removed.error().kind == ErrorKind::kBusy) {
      item.reason = "owned";
      report_(item);
    } else if (!removed) {
      fail(std::move(item), removed.error());
    } else {
      if (*removed) {
        item.outcome = Outcome::kRemoved;
        item.reason = reason;
      }
      report_(item);
    }
  }

  void fail(GarbageItem item, const Error& error) { report_(failed(std::move(item), error)); }

  const GarbageOptions& options_;
  std::string directoryName_;
  Layout layout_;
  SessionStore store_;
  const Report& report_;
  const std::stop_token& stop_;
  std::string backend_;  ///< as the last session told it
};

}  // namespace

std::string_view nameOf(Kind kind) noexcept {
  switch (kind) {
    case Kind::kLeftover:
      return "leftover";
    case Kind::kOrphan:
      return "orphan";
    case Kind::kDamaged:
      return "damaged";
    case Kind::kSession:
      break;
  }
  return "session";
}

std::string_view nameOf(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::kRemoved:
      return "removed";
    case Outcome::kWouldRemove:
      return "would-remove";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kKept:
      break;
  }
  return "kept";
}

Result<void> collectGarbage(const GarbageOptions& options, const Report& report, const std::stop_token& stop) {
  const UniqueFd place(::open(options.stateDirectory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!place) {
    return errno == ENOENT ? Result<void>() : storageError(errno, "open " + options.stateDirectory);
  }
  const Result<std::vector<std::string>> names = entriesOf(place.get());
  if (!names) {
    return names.error();
  }
  for (const std::string& name : *names) {
    if (isHexName(name) && (!options.backendName || sha256Hex(*options.backendName) == name)) {
      Collector(options, name, report, stop).run();
    }
  }
  if (!options.backendName) {
    collectLeftovers(WorkArea::support(options.stateDirectory), "", options, report, stop);
  }
  return {};
}

}  // namespace stitchkit
