#include "backend/launch/support_files.h"

#include "codingtools/regular_file.h"
#include "rpc/base/sha256.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "backend/diagnosis/set_up_cause.h"
#include "backend/launch/launch_helper/embedded_helper.h"
#include "backend/launch/support_sources.h"
#include "backend/storage/support_names.h"

namespace stitchkit {
namespace {

constexpr mode_t kDirectoryMode = 0755;
constexpr mode_t kFileMode = 0644;
constexpr mode_t kProgramMode = 0755;
constexpr std::size_t kKeyLength = 64;
// A set that another sidecar removes between two steps of ours is made again; more than once is no accident.
constexpr int kAttempts = 4;

// `agent` is who the guest is; root and nobody name the owners of files that its namespace does not map.
constexpr std::pair<std::string_view, std::string_view> kTexts[] = {
    {"passwd",
     "root:x:0:0:root:/root:/usr/sbin/nologin\n"
     "agent:x:1000:1000:Agent:/workspace:/bin/sh\n"
     "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
    {"group", "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n"},
    {"hosts", "127.0.0.1 localhost\n127.0.1.1 sandbox.localdomain sandbox\n::1 localhost ip6-localhost ip6-loopback\n"},
    {"nsswitch.conf",
     "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\nprotocols: files\n"
     "services: files\n"},
    {"resolv.conf", ""},
};

struct Failure {
  const char* operation;
  int error;
};
using Step = std::optional<Failure>;  // nullopt: done

// With its length, so that two lists of parts never give the same text.
void addPart(Sha256& digest, std::string_view part) {
  const std::uint64_t size = part.size();
  digest.update({reinterpret_cast<const char*>(&size), sizeof size});
  digest.update(part);
}

std::string bootId() {
  std::string id(64, '\0');
  const UniqueFd fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  const ssize_t size = fd ? ::read(fd.get(), id.data(), id.size()) : 0;
  id.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return id;
}

// The same for the life of the process.
const std::string& ownDigest() {
  static const std::string digest = [] {
    Sha256 made;
    addPart(made, bootId());
    addPart(made, launchHelperImage());
    for (const auto& [name, text] : kTexts) {
      addPart(made, name);
      addPart(made, text);
    }
    return made.hex();
  }();
  return digest;
}

std::string keyOf(const std::vector<SupportSource>& sources) {
  Sha256 digest;
  addPart(digest, ownDigest());
  for (const SupportSource& source : sources) {
    addPart(digest, source.path);
    addPart(digest, source.linkTarget);
    addPart(digest, source.version);
  }
  return digest.hex();
}

Step writeBytes(int fd, std::string_view bytes) {
  const int error = writeAll(fd, bytes);
  return error == 0 ? Step() : Failure{"write", error};
}

UniqueFd createFile(const std::string& path, mode_t mode) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (fd && ::fchmod(fd.get(), mode) != 0) {  // whatever umask is
    fd.reset();
  }
  return fd;
}

Step writeFile(const std::string& path, std::string_view bytes, mode_t mode) {
  const UniqueFd fd = createFile(path, mode);
  return fd ? writeBytes(fd.get(), bytes) : Failure{"create file", errno};
}

Step copyFile(const std::string& from, const std::string& to) {
  const UniqueFd source(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!source) {
    return {};  // gone or closed to us since it was listed: the guest does without
  }
  const UniqueFd target = createFile(to, kFileMode);
  if (!target) {
    return Failure{"create file", errno};
  }
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t count = ::read(source.get(), buffer.data(), buffer.size());
    if (count == 0) {
      return {};
    }
    if (count < 0 && errno != EINTR) {
      return Failure{"read", errno};
    }
    if (Step failed = writeBytes(target.get(), {buffer.data(), count > 0 ? static_cast<std::size_t>(count) : 0})) {
      return failed;
    }
  }
}

Step makeDirectory(const std::string& path) {
  if ((::mkdir(path.c_str(), kDirectoryMode) != 0 && errno != EEXIST) || ::chmod(path.c_str(), kDirectoryMode) != 0) {
    return Failure{"make directory", errno};
  }
  return {};
}

Step makeParents(const std::string& root, std::string_view below) {
  for (std::size_t slash = below.find('/', 1); slash != std::string_view::npos; slash = below.find('/', slash + 1)) {
    if (Step failed = makeDirectory(root + std::string(below.substr(0, slash)))) {
      return failed;
    }
  }
  return {};
}

Step copySource(const SupportSource& source, const std::string& root) {
  const std::string target = root + source.path;
  switch (source.kind) {
    case SupportSource::Kind::kDirectory:
      return makeDirectory(target);
    case SupportSource::Kind::kSymlink:
      return ::symlink(source.linkTarget.c_str(), target.c_str()) == 0 ? Step() : Failure{"make link", errno};
    case SupportSource::Kind::kFile:
      return copyFile(source.path, target);
  }
  return {};
}

Step fillSet(const std::string& root, const std::vector<SupportSource>& sources) {
  if (Step failed = makeDirectory(root + "/etc")) {
    return failed;
  }
  for (const auto& [name, text] : kTexts) {
    if (Step failed = writeFile(root + "/etc/" + std::string(name), text, kFileMode)) {
      return failed;
    }
  }
  std::string_view parent;  // of the last one: those of one directory follow each other
  for (const SupportSource& source : sources) {
    Step failed;
    if (const auto above = std::string_view(source.path).substr(0, source.path.rfind('/')); above != parent) {
      failed = makeParents(root, source.path);
      parent = above;
    }
    if (!failed) {
      failed = copySource(source, root);
    }
    if (failed) {
      return failed;
    }
  }
  return writeFile(root + "/launch-helper", launchHelperImage(), kProgramMode);
}

bool holds(const std::string& path, std::string_view expected) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::string bytes(expected.size() + 1, '\0');
  const ssize_t size = file ? ::pread(file.get(), bytes.data(), bytes.size(), 0) : -1;
  return size >= 0 && std::string_view(bytes.data(), static_cast<std::size_t>(size)) == expected;
}

bool isCopied(const SupportSource& source, const std::string& root) {
  struct stat original {};
  struct stat copy {};
  return source.kind != SupportSource::Kind::kFile || ::access(source.path.c_str(), R_OK) != 0 ||
         (::lstat(source.path.c_str(), &original) == 0 && ::lstat((root + source.path).c_str(), &copy) == 0 &&
          original.st_size == copy.st_size);
}

// What a set can have lost since it was made: to a full disk that was repaired, or to an operator.
bool isIntact(const std::string& root, const std::vector<SupportSource>& sources) {
  const auto textHolds = [&](const auto& text) { return holds(root + "/etc/" + std::string(text.first), text.second); };
  return holds(root + "/launch-helper", launchHelperImage()) &&
         std::all_of(std::begin(kTexts), std::end(kTexts), textHolds) &&
         std::all_of(sources.begin(), sources.end(),
                     [&](const SupportSource& source) { return isCopied(source, root); });
}

Error supportError(const Failure& failure) {
  const std::string what = "The files that guests need could not be made";
  const std::optional<Cause> cause = causeOfStorage(failure.error);
  return (cause ? unavailableBecause(what, *cause) : Error(ErrorKind::kUnavailable, what))
      .withPrivate(std::string("support files: ") + failure.operation + ": " + errnoName(failure.error));
}

UniqueFd openSet(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
}

bool lockSet(const UniqueFd& set, int operation) {
  int result = 0;
  do {
    result = ::flock(set.get(), operation);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

bool isSetName(std::string_view name) {
  return name.size() == kKeyLength || isSupportUnderWay(name);
}

/// Removes those sets that `mayGo` names and nobody has in use.
void removeUnused(const std::string& directory, const std::function<bool(std::string_view)>& mayGo) {
  std::error_code ignored;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    names.push_back(entry.path().filename().string());
  }
  for (const std::string& name : names) {
    const std::string path = directory + '/' + name;
    if (!mayGo(name)) {
      continue;
    }
    const UniqueFd set = openSet(path);
    if (!set || !lockSet(set, LOCK_EX | LOCK_NB)) {
      continue;
    }
    // Out of sight first: half a set must never be found under its name.
    std::string removal = path;
    if (!name.starts_with(kSupportRemovalPrefix)) {
      removal = directory + '/' + std::string(kSupportRemovalPrefix) + name;
      if (::rename(path.c_str(), removal.c_str()) != 0) {
        continue;
      }
    }
    std::filesystem::remove_all(removal, ignored);
  }
}

}  // namespace

SupportFiles::SupportFiles(std::string directory) : directory_(std::move(directory)) {}

SupportPaths SupportFiles::paths() const {
  const std::string root = directory_ + '/' + key_;
  return {root + "/etc", root + "/launch-helper"};
}

Result<SupportPaths> SupportFiles::ensure() {
  const std::lock_guard lock(mutex_);
  if (!key_.empty() && stamp_ == supportSourcesStamp(sources_) && ::access(paths().helper.c_str(), X_OK) == 0) {
    return paths();
  }
  sources_ = listSupportSources();
  stamp_ = supportSourcesStamp(sources_);
  const std::string key = keyOf(sources_);
  Result<void> made;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (adopt(key)) {
      removeUnused(directory_, [&key](std::string_view name) { return isSetName(name) && name != key; });
      return paths();
    }
    made = make(key);
  }
  key_.clear();
  return made ? supportError({"adopt", EBUSY}) : made.error();
}

// False when there is no such set.
bool SupportFiles::adopt(const std::string& key) {
  const std::string path = directory_ + '/' + key;
  UniqueFd set = openSet(path);
  if (!set || !lockSet(set, LOCK_SH)) {
    return false;
  }
  // Another sidecar may have removed it while we waited for the lock.
  struct stat locked {};
  struct stat present {};
  if (::fstat(set.get(), &locked) != 0 || ::lstat(path.c_str(), &present) != 0 || locked.st_ino != present.st_ino ||
      locked.st_dev != present.st_dev) {
    return false;
  }
  if (!isIntact(path, sources_)) {
    // Out of sight, for a new one; guests that were started with it keep what they have.
    std::string removal = directory_ + '/' + std::string(kSupportRemovalPrefix) + "XXXXXX";
    if (::mkdtemp(removal.data()) != nullptr) {
      static_cast<void>(::rename(path.c_str(), removal.c_str()));
    }
    return false;
  }
  key_ = key;
  usedSets_.push_back(std::move(set));
  return true;
}

Result<void> SupportFiles::make(const std::string& key) {
  std::error_code failed;
  std::filesystem::create_directories(directory_, failed);
  std::string root = directory_ + '/' + std::string(kSupportBuildPrefix) + "XXXXXX";
  if (failed || ::mkdtemp(root.data()) == nullptr) {
    return supportError({"make build directory", failed ? failed.value() : errno});
  }
  const UniqueFd set = openSet(root);
  Step step;
  if (!set || !lockSet(set, LOCK_SH)) {
    step = Failure{"lock build directory", errno};
  } else {
    step = fillSet(root, sources_);
  }
  if (!step && ::fchmod(set.get(), kDirectoryMode) != 0) {
    step = Failure{"chmod", errno};
  }
  const std::string target = directory_ + '/' + key;
  if (!step && ::rename(root.c_str(), target.c_str()) == 0) {
    return {};
  }
  const int error = errno;
  std::filesystem::remove_all(root, failed);
  if (step) {
    return supportError(*step);
  }
  // Another sidecar was first: its set is as good.
  return error == EEXIST || error == ENOTEMPTY ? Result<void>() : supportError({"publish", error});
}

void SupportFiles::sweep(const std::string& directory) {
  removeUnused(directory, isSupportUnderWay);
}

}  // namespace stitchkit
