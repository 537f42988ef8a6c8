#include "codingtools/contained_directory.h"

#include "codingtools/contained_open.h"
#include "codingtools/file_error.h"
#include "codingtools/regular_file.h"
#include "codingtools/remove_tree.h"
#include "codingtools/staging_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace stitchkit {

namespace {

constexpr mode_t kFileMode = 0644;
constexpr mode_t kDirectoryMode = 0755;
constexpr int kForReading = O_RDONLY | O_NONBLOCK | O_NOCTTY;
/// How often a directory that was just made may be taken away again before its absence is reported.
constexpr int kMaxMakeAttempts = 16;

/// What stands where a file shall be written.
struct Target {
  UniqueFd writable;  ///< the existing file; none when there is none
  mode_t mode = kFileMode;
};

Result<Target> inspectTarget(int parent, const std::string& name) {
  struct stat status {};
  if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT ? Result<Target>(Target{}) : Result<Target>(fileError(errno, "fstatat"));
  }
  if (S_ISLNK(status.st_mode) || S_ISDIR(status.st_mode) || !S_ISREG(status.st_mode)) {
    const int error = S_ISLNK(status.st_mode) ? ELOOP : S_ISDIR(status.st_mode) ? EISDIR : ENXIO;
    return fileError(error, "fstatat");
  }
  // Opening tells what a guest's open would: no permission, a running program, a read-only file system.
  OpenOutcome opened = openSegment(parent, name.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY);
  if (!opened.fd) {
    return opened.error == ENOENT ? Result<Target>(Target{}) : Result<Target>(fileError(opened.error, "openat"));
  }
  if (::fstat(opened.fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return fileError(ENXIO, "fstat");
  }
  return Target{std::move(opened.fd), status.st_mode & 07777U};
}

/// Where nothing may stand. What comes there later is noticed when the file is put there.
Result<Target> inspectVacancy(int parent, const std::string& name) {
  struct stat status {};
  if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    return fileError(EEXIST, "check");
  }
  return errno == ENOENT ? Result<Target>(Target{}) : Result<Target>(fileError(errno, "fstatat"));
}

bool isFile(const Target& target, const FileIdentity& file) {
  struct stat status {};
  return target.writable && ::fstat(target.writable.get(), &status) == 0 && FileIdentity::of(status) == file;
}

/// Makes the directory and gives it its mode whatever the umask. EEXIST is success: whoever made it chose the mode.
int makeDirectory(int parent, const char* name) {
  if (::mkdirat(parent, name, kDirectoryMode) != 0) {
    return errno == EEXIST ? 0 : errno;
  }
  const OpenOutcome made = openSegment(parent, name, O_PATH | O_DIRECTORY);
  struct stat status {};
  if (!made.fd || ::fstat(made.fd.get(), &status) != 0 || (status.st_mode & 0777U) == kDirectoryMode) {
    return made.error == ENOENT ? 0 : made.error;
  }
  // Through the descriptor: the name may be a guest's link by now.
  const std::string self = "/proc/self/fd/" + std::to_string(made.fd.get());
  return ::chmod(self.c_str(), (status.st_mode & 07000U) | kDirectoryMode) == 0 ? 0 : errno;
}

OpenOutcome openOrMake(int parent, const std::string& name, const StagingDirectory& staging) {
  OpenOutcome opened = openSegment(parent, name.c_str(), O_PATH | O_DIRECTORY);
  for (int attempt = 0; opened.error == ENOENT && attempt < kMaxMakeAttempts; ++attempt) {
    int error = makeDirectory(parent, name.c_str());
    error = error == 0 ? staging.settleEntries(parent) : error;
    if (error != 0) {
      return {UniqueFd(), error};
    }
    opened = openSegment(parent, name.c_str(), O_PATH | O_DIRECTORY);
  }
  return opened;
}

Error notDurable(int error) {
  return error == ENOSPC || error == EDQUOT ? fileError(error, "force to the disk")
                                            : internalError("The change could not be made durable", "sync", error);
}

}  // namespace

Result<ContainedDirectory> ContainedDirectory::open(const std::string& hostPath) {
  UniqueFd directory(::open(hostPath.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) {
    return internalError("The directory could not be opened", "open " + hostPath, errno);
  }
  return ContainedDirectory(std::move(directory));
}

Result<ContainedDirectory> ContainedDirectory::adopt(UniqueFd directory) {
  struct stat status {};
  if (::fstat(directory.get(), &status) != 0) {
    return internalError("The directory could not be opened", "fstat", errno);
  }
  if (!S_ISDIR(status.st_mode)) {
    return internalError("The directory could not be opened", "fstat", ENOTDIR);
  }
  return ContainedDirectory(std::move(directory));
}

Result<UniqueFd> ContainedDirectory::makeDirectories(const WorkspacePath& path, const StagingDirectory& staging) const {
  const std::string& relative = path.relative();
  UniqueFd current;
  for (std::size_t begin = 0;;) {
    const std::size_t end = relative.find('/', begin);
    const std::string name = relative.substr(begin, end == std::string::npos ? end : end - begin);
    OpenOutcome step = openOrMake(current ? current.get() : directory_.get(), name, staging);
    if (!step.fd) {
      return fileError(step.error, "make directory");
    }
    current = std::move(step.fd);
    if (end == std::string::npos) {
      return current;
    }
    begin = end + 1;
  }
}

Result<UniqueFd> ContainedDirectory::openParent(const WorkspacePath& path, Parents parents,
                                                const StagingDirectory& staging) const {
  if (path.tooLong()) {
    return fileError(ENAMETOOLONG, "check");
  }
  const WorkspacePath parent = path.parent();
  OpenOutcome opened = openBeneath(directory_.get(), parent.relative(), O_PATH | O_DIRECTORY);
  if (opened.error == ENOENT && parents == Parents::kCreate && !parent.isRoot()) {
    return makeDirectories(parent, staging);
  }
  if (!opened.fd) {
    return fileError(opened.error, "open parent");
  }
  return std::move(opened.fd);
}

Result<std::string> ContainedDirectory::readFile(const WorkspacePath& path, std::size_t maxBytes) const {
  if (path.tooLong()) {
    return fileError(ENAMETOOLONG, "check");
  }
  const OpenOutcome opened = openBeneath(directory_.get(), path.relative(), kForReading);
  if (!opened.fd) {
    return fileError(opened.error, "open");
  }
  return readRegular(opened.fd.get(), maxBytes);
}

std::optional<std::string> ContainedDirectory::readCachedFile(const WorkspacePath& path, std::size_t maxBytes) const {
  if (path.tooLong()) {
    return std::nullopt;
  }
  const UniqueFd opened = openBeneathCached(directory_.get(), path.relative(), kForReading);
  return opened ? readRegularCached(opened.get(), maxBytes) : std::nullopt;
}

Result<ReplacedFile> ContainedDirectory::replaceFile(const WorkspacePath& path, std::string_view bytes, Parents parents,
                                                     StagingDirectory& staging, const ExpectedTarget& expected,
                                                     Replacing replacing) const {
  if (path.isRoot()) {
    return fileError(EISDIR, "check");
  }
  Result<UniqueFd> parent = openParent(path, parents, staging);
  if (!parent) {
    return parent.error();
  }
  const std::string name(path.name());
  const bool mayReplace = expected.kind != ExpectedTarget::Kind::kNothing;
  Result<Target> target = mayReplace ? inspectTarget(parent->get(), name) : inspectVacancy(parent->get(), name);
  if (!target) {
    return target.error();
  }
  if (expected.kind == ExpectedTarget::Kind::kFile && !isFile(*target, expected.file)) {
    return fileError(ESTALE, "check");
  }
  StagingDirectory::Made staged = staging.make();
  const mode_t mode = replacing == Replacing::kWhole ? target->mode : target->mode & 01777U;
  int error = staged.file ? staged.file->write({bytes}, mode) : staged.error;
  if (error != 0) {
    // The staging directory is ours: only a lack of space is the caller's business.
    return error == ENOSPC || error == EDQUOT ? fileError(error, "stage")
                                              : internalError("The file operation failed", "stage", error);
  }
  error = staged.file->moveTo(parent->get(), name, mayReplace);
  if ((error == EACCES || error == EPERM) && target->writable && replacing == Replacing::kAsWriting) {
    const Result<void> overwritten = overwriteRegular(target->writable.get(), bytes);
    error = overwritten ? staging.durability().settleFile(target->writable.get()) : 0;
    if (!overwritten || error != 0) {
      return overwritten ? notDurable(error) : overwritten.error();
    }
    return ReplacedFile();
  }
  if (error != 0) {
    return fileError(error, "renameat");
  }
  if (error = staged.file->settleName(parent->get()); error != 0) {
    return notDurable(error);
  }
  return ReplacedFile(std::move(target->writable), staged.file->takeFile());
}

Result<void> ContainedDirectory::removeTree(const WorkspacePath& path, const std::stop_token& stop,
                                            const Durability& durability) const {
  if (path.isRoot()) {
    return fileError(EBUSY, "check");
  }
  if (path.tooLong()) {
    return fileError(ENAMETOOLONG, "check");
  }
  const OpenOutcome parent = openBeneath(directory_.get(), path.parent().relative(), O_PATH | O_DIRECTORY);
  if (parent.error == ENOENT || parent.error == ENOTDIR) {
    return {};
  }
  if (!parent.fd) {
    return fileError(parent.error, "open parent");
  }
  if (Result<void> removed = removeEntry(parent.fd.get(), std::string(path.name()).c_str(), stop); !removed) {
    return removed;
  }
  const int error = durability.settleEntries(parent.fd.get(), parent.fd.get());
  return error == 0 ? Result<void>() : notDurable(error);
}

}  // namespace stitchkit
