#include "backend/storage/staging.h"

#include "backend/storage/files.h"
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
  logEvent(LogLevel::kWarning, "leftover",
           {{"name", name}, {"message", "could not be removed: " + error.message + " " + error.privateDetail}});
}

/// Removes one entry if no living owner holds it.
void sweepEntry(int area, const std::string& name, const std::stop_token& stop) {
  const OpenOutcome entry = openSegment(area, name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (entry.error == ENOENT) {
    return;
  }
  // What cannot be opened cannot be locked either (a link, a directory without permission bits): not an owner's.
  if (entry.fd && (::flock(entry.fd.get(), LOCK_EX | LOCK_NB) != 0 || !names(area, name.c_str(), entry.fd.get()))) {
    return;
  }
  if (const Result<void> removed = removeEntry(area, name.c_str(), stop); !removed) {
    logFailure(name, removed.error());
  }
}

}  // namespace

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
    logFailure(name_, removed.error());
  }
}

void sweepStaging(const Layout& layout, const std::stop_token& stop) {
  const Result<std::optional<UniqueFd>> area = layout.open(Layout::Area::kStaging);
  if (!area || !*area) {
    return;
  }
  const int directory = (*area)->get();
  std::vector<std::string> entries;
  DirectoryReader reader;
  if (reader.start(directory) == 0) {
    while (const DirectoryReader::Entry* const entry = reader.next()) {
      entries.emplace_back(entry->name);
    }
  }
  for (const std::string& name : entries) {
    if (stop.stop_requested()) {
      return;
    }
    sweepEntry(directory, name, stop);
  }
}

}  // namespace stitchkit
