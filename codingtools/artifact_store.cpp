#include "codingtools/artifact_store.h"

#include "codingtools/contained_open.h"
#include "codingtools/directory_reader.h"
#include "codingtools/file_error.h"
#include "codingtools/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <optional>
#include <vector>

namespace stitchkit {

namespace {

// A file's name is its number; `next` is a file whose size is the number of the latest, so that one that was evicted is
// not given out again. An artifact is its request, a newline (JSON text holds none), and the content.
constexpr const char* kDirectory = "artifacts";
constexpr const char* kLatest = "latest";
constexpr std::string_view kPrefix = "artifact-";
constexpr unsigned kArtifactMode = 0600;
constexpr std::size_t kMaxRequestBytes = 1024UL * 1024;

struct Stored {
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
};

std::optional<std::uint64_t> numberFrom(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() && std::to_string(number) == text;
  return whole && number > 0 ? std::optional(number) : std::nullopt;
}

Error unknownReference(std::string_view reference) {
  return Error(ErrorKind::kSpillReferenceUnknown, "There is no such artifact")
      .withDetail("reference", std::string(reference.substr(0, 256)))
      .withHint("Use a reference that run_command gave; old artifacts make room for new ones.");
}

Error storeError(int error, const char* operation) {
  return error == ENOSPC || error == EDQUOT ? fileError(error, operation)
                                            : internalError("The artifact could not be kept", operation, error);
}

Result<UniqueFd> openDirectory(int session, const StagingDirectory& staging) {
  int error = ::mkdirat(session, kDirectory, 0700) == 0 ? staging.settleEntries(session) : errno;
  if (error != 0 && error != EEXIST) {
    return storeError(error, "mkdir artifacts");
  }
  OpenOutcome opened = openSegment(session, kDirectory, O_RDONLY | O_DIRECTORY);
  if (!opened.fd) {
    return storeError(opened.error, "open artifacts");
  }
  return std::move(opened.fd);
}

/// The oldest first.
Result<std::vector<Stored>> list(int directory) {
  std::vector<Stored> stored;
  DirectoryReader reader;
  if (const int error = reader.start(directory); error != 0) {
    return storeError(error, "read artifacts");
  }
  while (const DirectoryReader::Entry* entry = reader.next()) {
    struct stat status {};
    if (const auto number = numberFrom(entry->name);
        number && ::fstatat(directory, entry->name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
      stored.push_back({*number, static_cast<std::uint64_t>(status.st_size)});
    }
  }
  if (reader.error() != 0) {
    return storeError(reader.error(), "read artifacts");
  }
  std::sort(stored.begin(), stored.end(), [](const Stored& a, const Stored& b) { return a.number < b.number; });
  return stored;
}

std::uint64_t latestNumber(int directory, const std::vector<Stored>& stored) {
  struct stat status {};
  const std::uint64_t noted =
      ::fstatat(directory, kLatest, &status, AT_SYMLINK_NOFOLLOW) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  return std::max(noted, stored.empty() ? 0 : stored.back().number);
}

/// Removes the oldest until `bytes` more fit; what is removed is noted first, so that no number is used again.
Result<void> makeRoom(int directory, const StagingDirectory& staging, const std::vector<Stored>& stored,
                      std::uint64_t bytes) {
  std::uint64_t total = bytes;
  for (const Stored& entry : stored) {
    total += entry.bytes;
  }
  if (total <= ArtifactStore::kMaxTotalBytes) {
    return {};
  }
  const OpenOutcome latest = openSegment(directory, kLatest, O_WRONLY | O_CREAT, 0600);
  if (!latest.fd || ::ftruncate(latest.fd.get(), static_cast<off_t>(latestNumber(directory, stored))) != 0) {
    return storeError(latest.fd ? errno : latest.error, "note the latest artifact");
  }
  int error = staging.durability().settleFile(latest.fd.get());
  error = error == 0 ? staging.settleEntries(directory) : error;
  if (error != 0) {
    return storeError(error, "note the latest artifact");
  }
  for (const Stored& entry : stored) {
    if (total <= ArtifactStore::kMaxTotalBytes) {
      break;
    }
    if (::unlinkat(directory, std::to_string(entry.number).c_str(), 0) != 0 && errno != ENOENT) {
      return storeError(errno, "remove an artifact");
    }
    total -= entry.bytes;
  }
  return {};
}

/// 0 or errno.
int writeWhole(int directory, StagingDirectory& staging, const std::string& name, std::string_view request,
               std::string_view content) {
  StagingDirectory::Made staged = staging.make();
  int error = staged.file ? staged.file->write({request, "\n", content}, kArtifactMode) : staged.error;
  error = error == 0 ? staged.file->moveTo(directory, name, true) : error;
  return error == 0 ? staged.file->settleName(directory) : error;
}

/// Reads the request and finds the content behind it.
Result<OpenedArtifact> readRequest(UniqueFd file) {
  struct stat status {};
  std::string head(kMaxRequestBytes + 1, '\0');
  const ssize_t got = ::fstat(file.get(), &status) == 0 ? ::pread(file.get(), head.data(), head.size(), 0) : -1;
  if (got < 0) {
    return storeError(errno, "read an artifact");
  }
  const std::size_t end = std::string_view(head.data(), static_cast<std::size_t>(got)).find('\n');
  if (end == std::string_view::npos) {
    return internalError("The artifact is damaged", "read an artifact", EILSEQ);
  }
  head.resize(end);
  const auto begin = static_cast<off_t>(end + 1);
  return OpenedArtifact{std::move(file), begin, static_cast<std::uint64_t>(status.st_size - begin), std::move(head)};
}

}  // namespace

Result<std::string> ArtifactStore::write(std::string_view content, std::string_view request) {
  const std::uint64_t bytes = request.size() + 1 + content.size();
  if (bytes > kMaxTotalBytes || request.size() > kMaxRequestBytes) {
    return Error(ErrorKind::kLimit, "The artifact is too large").withReason("storage");
  }
  const std::lock_guard lock(writing_);
  const Result<UniqueFd> directory = openDirectory(session_, staging_);
  if (!directory) {
    return directory.error();
  }
  const Result<std::vector<Stored>> stored = list(directory->get());
  if (!stored) {
    return stored.error();
  }
  const std::uint64_t number = latestNumber(directory->get(), *stored) + 1;
  if (Result<void> room = makeRoom(directory->get(), staging_, *stored, bytes); !room) {
    return std::move(room).error();
  }
  if (const int error = writeWhole(directory->get(), staging_, std::to_string(number), request, content); error != 0) {
    return storeError(error, "write an artifact");
  }
  return std::string(kPrefix) + std::to_string(number);
}

Result<OpenedArtifact> ArtifactStore::open(std::string_view reference) const {
  const bool named = reference.substr(0, kPrefix.size()) == kPrefix;
  const auto number = named ? numberFrom(reference.substr(kPrefix.size())) : std::nullopt;
  if (!number) {
    return unknownReference(reference);
  }
  const OpenOutcome directory = openSegment(session_, kDirectory, O_PATH | O_DIRECTORY);
  OpenOutcome file;
  if (directory.fd) {
    file = openSegment(directory.fd.get(), std::to_string(*number).c_str(), O_RDONLY);
  }
  if (!file.fd) {
    const int error = directory.fd ? file.error : directory.error;
    return error == ENOENT ? unknownReference(reference) : storeError(error, "open an artifact");
  }
  return readRequest(std::move(file.fd));
}

}  // namespace stitchkit
