#include "backend/storage/staging.h"

#include "backend/storage/files.h"
#include "backend/storage/support_names.h"
#include "codingtools/contained_open.h"
#include "codingtools/directory_reader.h"
#include "codingtools/remove_tree.h"
#include "rpc/base/log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace stitchkit {

namespace {

/// A sweeper of another process may take a new directory for a leftover until its lock is held.
constexpr int kMaxNameAttempts = 100;

void logFailure(const std::string& name, const Error& error) {
  const std::string& why = error.privateDetail.empty() ? error.message : error.privateDetail;
  logEvent(LogLevel::kWarning, "leftover", {{"name", name}, {"message", "could not be removed: " + why}});
}

/// An entry, opened where it can be; locked when no living owner holds it. What cannot be opened cannot be locked
/// either (a link, a directory without permission bits): not an owner's.
struct Claimed {
  OpenOutcome entry;
  bool owned;
};
Claimed claim(int area, const std::string& name) {
  Claimed claimed{openSegment(area, name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY), false};
  const int file = claimed.entry.fd.get();
  claimed.owned = claimed.entry.fd && (::flock(file, LOCK_EX | LOCK_NB) != 0 || !names(area, name.c_str(), file));
  return claimed;
}

/// None where it is missing.
Result<std::optional<UniqueFd>> openArea(const WorkArea& area) {
  UniqueFd place(::open(area.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!place && errno != ENOENT) {
    return storageError(errno, "open " + area.path);
  }
  return place ? std::optional<UniqueFd>(std::move(place)) : std::nullopt;
}

}  // namespace

WorkArea WorkArea::staging(const Layout& layout) {
  return {layout.namespaceDirectory() + '/' + Layout::name(Layout::Area::kStaging),
          [](std::string_view) { return true; }};
}

WorkArea WorkArea::support(const std::string& stateDirectory) {
  return {stateDirectory + "/support", isSupportUnderWay};
}

Result<StagingEntry> StagingEntry::make(const Layout& layout) {
  Result<UniqueFd> area = layout.openOrMake(Layout::Area::kStaging);
  if (!area) {
    return area.error();
  }
  for (int attempt = 0; attempt < kMaxNameAttempts; ++attempt) {
    std::string name = randomName();
    if (Result<void> made = makeDirectory(area->get(), name.c_str()); !made) {
      return made.error();
    }
    OpenOutcome opened = openSegment(area->get(), name.c_str(), O_RDONLY | O_DIRECTORY);
    if (opened.fd && ::flock(opened.fd.get(), LOCK_EX | LOCK_NB) == 0 &&
        names(area->get(), name.c_str(), opened.fd.get())) {
      std::string path = layout.namespaceDirectory() + "/staging/" + name;
      return StagingEntry(std::move(*area), std::move(opened.fd), std::move(name), std::move(path));
    }
    if (opened.error != 0 && opened.error != ENOENT) {
      static_cast<void>(::unlinkat(area->get(), name.c_str(), AT_REMOVEDIR));
      return storageError(opened.error, "open staging");
    }
  }
  return storageError(EBUSY, "lock staging");
}

StagingEntry::~StagingEntry() {
  if (!directory_) {
    return;
  }
  if (const Result<void> removed = removeEntry(area_.get(), name_.c_str()); !removed) {
    logFailure(name_, storageError(removed.error(), "remove " + path_));
  }
}

Result<std::vector<StagingLook>> lookAtWork(const WorkArea& area) {
  const Result<std::optional<UniqueFd>> place = openArea(area);
  if (!place) {
    return place.error();
  }
  std::vector<StagingLook> found;
  if (!*place) {
    return found;
  }
  DirectoryReader reader;
  int error = reader.start((*place)->get());
  while (const DirectoryReader::Entry* const entry = error == 0 ? reader.next() : nullptr) {
    if (area.isUnderWay(entry->name)) {
      found.push_back({entry->name, claim((*place)->get(), entry->name).owned});
    }
  }
  error = error == 0 ? reader.error() : error;
  return error == 0 ? Result<std::vector<StagingLook>>(std::move(found)) : storageError(error, "read " + area.path);
}

Result<Swept> sweepWork(const WorkArea& area, const std::string& name, const std::stop_token& stop) {
  const Result<std::optional<UniqueFd>> place = openArea(area);
  if (!place) {
    return place.error();
  }
  if (!*place) {
    return Swept::kRemoved;
  }
  const Claimed claimed = claim((*place)->get(), name);
  if (claimed.owned) {
    return Swept::kOwned;
  }
  if (const Result<void> removed = removeEntry((*place)->get(), name.c_str(), stop); !removed) {
    return storageError(removed.error(), "remove " + area.path + '/' + name);
  }
  return Swept::kRemoved;
}

void sweepStaging(const Layout& layout, const std::stop_token& stop) {
  const WorkArea area = WorkArea::staging(layout);
  const Result<std::vector<StagingLook>> found = lookAtWork(area);
  if (!found) {
    return;
  }
  for (const StagingLook& look : *found) {
    if (stop.stop_requested()) {
      return;
    }
    if (const Result<Swept> swept = look.owned ? Swept::kOwned : sweepWork(area, look.name, stop); !swept) {
      logFailure(look.name, swept.error());
    }
  }
}

}  // namespace stitchkit
