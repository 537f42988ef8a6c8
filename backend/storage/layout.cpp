#include "backend/storage/layout.h"

#include "backend/storage/files.h"
#include "rpc/base/sha256.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

namespace stitchkit {

namespace {

/// mkdir -p; links on the operator's own path are followed.
int makePath(const std::string& path) {
  int refused = 0;  // perhaps of a folder that is there
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    if (::mkdir(path.substr(0, slash).c_str(), 0700) != 0 && errno != EEXIST) {
      if (errno != EROFS && errno != EACCES) {
        return refused != 0 && errno == ENOENT ? refused : errno;
      }
      refused = errno;
    }
  }
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) {
    return 0;
  }
  return refused != 0 && errno == ENOENT ? refused : errno;
}

}  // namespace

Layout::Layout(const std::string& stateDirectory, std::string backendName)
    : backendName_(std::move(backendName)), namespaceDirectory_(stateDirectory + '/' + sha256Hex(backendName_)) {}

Layout Layout::ofDirectory(const std::string& stateDirectory, std::string_view directoryName) {
  return Layout(Place{"", stateDirectory + '/' + std::string(directoryName)});
}

Result<UniqueFd> Layout::openOrMake(Area area) const {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  UniqueFd place(::open(namespaceDirectory_.c_str(), kFlags));
  if (!place && errno == ENOENT) {
    if (const int error = makePath(namespaceDirectory_); error != 0) {
      return storageError(error, "mkdir " + namespaceDirectory_);
    }
    place.reset(::open(namespaceDirectory_.c_str(), kFlags));
  }
  if (!place) {
    return storageError(errno, "open " + namespaceDirectory_);
  }
  return openOrMakeDirectory(place.get(), name(area));
}

Result<std::optional<UniqueFd>> Layout::open(Area area) const {
  const std::string path = namespaceDirectory_ + '/' + name(area);
  UniqueFd place(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!place && errno != ENOENT) {
    return storageError(errno, "open " + path);
  }
  return place ? std::optional<UniqueFd>(std::move(place)) : std::nullopt;
}

const char* Layout::name(Area area) noexcept {
  switch (area) {
    case Area::kTemplates:
      return "templates";
    case Area::kSessions:
      return "sessions";
    case Area::kStaging:
      break;
  }
  return "staging";
}

}  // namespace stitchkit
