#include "codingtools/tool_files.h"

#include "codingtools/file_error.h"
#include "codingtools/tool_path.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace stitchkit {

namespace {

enum class Use : bool { kReading, kWriting };

struct RefusalWords {
  ErrorKind kind;
  const char* message;
  const char* hint;
};

/// What cannot be where it was looked for. `parent`: it went wrong on the way to the last segment.
RefusalWords wordsFor(int error, Use use, bool parent) {
  const bool writing = use == Use::kWriting;
  switch (error) {
    case ENOENT:
      return {ErrorKind::kNotFound, "There is no such path",
              "List the directory, or search for the name with glob, to find what there is."};
    case EACCES:
    case EPERM:
    case EROFS:
      return {ErrorKind::kForbidden, "The workspace does not permit this",
              "The file or its directory has no permission for it; a command in the sandbox can change that."};
    case ELOOP:
      if (!parent) {
        return {ErrorKind::kForbidden, "The path is a symbolic link", "Links are not followed: name the file itself."};
      }
      [[fallthrough]];
    case ENOTDIR:
      return {writing ? ErrorKind::kConflict : ErrorKind::kBadRequest, "A segment of the path is no directory",
              "A file or a symbolic link stands where a directory is needed; use another path."};
    case EISDIR:
      return {writing ? ErrorKind::kConflict : ErrorKind::kBadRequest, "The path is a directory",
              "Name a file; list_directory shows what the directory holds."};
    case EEXIST:
      return {ErrorKind::kConflict, "The file exists already", "Set overwrite to replace it, or use edit_file."};
    case ESTALE:
      return {ErrorKind::kConflict, "It is not the one that was looked at any more",
              "It was replaced or moved meanwhile: look at it again."};
    case EAGAIN:
      return {ErrorKind::kConflict, "Another process holds a lease on the file", "Try again when it has let go of it."};
    case ETXTBSY:
      return {ErrorKind::kConflict, "The file is a program that is running", "Wait for it to end, or stop it."};
    case ENAMETOOLONG:
      return {ErrorKind::kBadRequest, "The path is too long", "Use a shorter path."};
    default:
      return {writing ? ErrorKind::kConflict : ErrorKind::kBadRequest, "The path is not a regular file",
              "Only regular files can be used: no FIFO, socket or device."};
  }
}

Error toolError(int error, const WorkspacePath& path, Use use, bool parent) {
  const RefusalWords words = wordsFor(error, use, parent);
  return Error(words.kind, words.message).withDetail("path", toolPathText(path)).withHint(words.hint);
}

bool hasErrno(const Error& error, int number) {
  const auto* const name = error.kind == ErrorKind::kPath && !error.details.empty()
                               ? std::get_if<std::string>(&error.details.front().second)
                               : nullptr;
  return name != nullptr && *name == errnoName(number);
}

/// From the errno in an engine's error; what is no path error (a full disk, a fault of ours) stays what it is.
Error toolError(Error error, const WorkspacePath& path, Use use) {
  if (error.kind != ErrorKind::kPath) {
    return error;
  }
  for (const int known :
       {ENOENT, EACCES, EPERM, EROFS, ELOOP, ENOTDIR, EISDIR, EEXIST, ESTALE, EAGAIN, ETXTBSY, ENAMETOOLONG}) {
    if (hasErrno(error, known)) {
      return toolError(known, path, use, false);
    }
  }
  return toolError(ENXIO, path, use, false);
}

/// What has the path's name in its directory.
std::optional<FileIdentity> nameHolder(int directory, const WorkspacePath& path) {
  struct stat status {};
  if (::fstatat(directory, std::string(path.name()).c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return std::nullopt;
  }
  return FileIdentity::of(status);
}

ExpectedTarget expectedTarget(const WritePlan& plan, ToolFiles::Existing existing) {
  switch (existing) {
    case ToolFiles::Existing::kReplaced:
      return {};
    case ToolFiles::Existing::kAsPlanned:
      if (plan.target) {
        return {ExpectedTarget::Kind::kFile, *plan.target};
      }
      break;
    case ToolFiles::Existing::kKept:
      break;
  }
  return {ExpectedTarget::Kind::kNothing, {}};
}

Result<FileIdentity> identityOf(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return fileError(errno, "fstat");
  }
  return FileIdentity::of(status);
}

}  // namespace

OpenOutcome ToolFiles::openParent(const WorkspacePath& path) const {
  return openBeneath(workspace_.descriptor(), path.parent().relative(), O_PATH | O_DIRECTORY);
}

Result<OpenedFile> ToolFiles::open(const WorkspacePath& path) const {
  const OpenOutcome parent = openParent(path);
  if (!parent.fd) {
    return toolError(parent.error, path, Use::kReading, true);
  }
  OpenOutcome opened = openSegment(parent.fd.get(), std::string(path.name()).c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!opened.fd) {
    return toolError(opened.error, path, Use::kReading, false);
  }
  struct stat status {};
  if (::fstat(opened.fd.get(), &status) != 0) {
    return fileError(errno, "fstat");
  }
  if (!S_ISREG(status.st_mode)) {
    return toolError(S_ISDIR(status.st_mode) ? EISDIR : ENXIO, path, Use::kReading, false);
  }
  return OpenedFile{std::move(opened.fd), FileIdentity::of(status), static_cast<std::uint64_t>(status.st_size)};
}

Result<UniqueFd> ToolFiles::openDirectory(const WorkspacePath& path) const {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NONBLOCK;
  if (path.isRoot()) {
    OpenOutcome root = openBeneath(workspace_.descriptor(), {}, kFlags);
    return root.fd ? Result<UniqueFd>(std::move(root.fd)) : toolError(root.error, path, Use::kReading, true);
  }
  const OpenOutcome parent = openParent(path);
  if (!parent.fd) {
    return toolError(parent.error, path, Use::kReading, true);
  }
  OpenOutcome opened = openSegment(parent.fd.get(), std::string(path.name()).c_str(), kFlags);
  return opened.fd ? Result<UniqueFd>(std::move(opened.fd)) : toolError(opened.error, path, Use::kReading, false);
}

Result<FileIdentity> ToolFiles::identifyDirectory(const WorkspacePath& path) const {
  const Result<UniqueFd> directory = openDirectory(path);
  return directory ? identityOf(directory->get()) : Result<FileIdentity>(directory.error());
}

Result<UniqueFd> ToolFiles::openSameDirectory(const WorkspacePath& path, const FileIdentity& directory) const {
  Result<UniqueFd> opened = openDirectory(path);
  const Result<FileIdentity> now = opened ? identityOf(opened->get()) : Result<FileIdentity>(opened.error());
  if (!now || !(*now == directory)) {
    return toolError(ESTALE, path, Use::kReading, false);
  }
  return opened;
}

Result<void> ToolFiles::confirm(const WorkspacePath& path, const FileIdentity& file) const {
  const Result<OpenedFile> now = open(path);
  if (!now || !(now->identity == file)) {
    return toolError(ESTALE, path, Use::kReading, false);
  }
  return {};
}

Result<WritePlan> ToolFiles::planWrite(const WorkspacePath& path) const {
  WritePlan plan{path, path.parent(), {}, {}, {}};
  for (;; plan.existing = plan.existing.parent()) {
    const OpenOutcome directory = openBeneath(workspace_.descriptor(), plan.existing.relative(), O_PATH | O_DIRECTORY);
    if (directory.fd) {
      const Result<FileIdentity> identity = identityOf(directory.fd.get());
      if (!identity) {
        return identity.error();
      }
      plan.existingIdentity = *identity;
      plan.target = plan.missingDirectories.empty() ? nameHolder(directory.fd.get(), path) : std::nullopt;
      std::reverse(plan.missingDirectories.begin(), plan.missingDirectories.end());
      return plan;
    }
    if (directory.error != ENOENT || plan.existing.isRoot()) {
      return toolError(directory.error, path, Use::kWriting, true);
    }
    plan.missingDirectories.push_back(toolPathText(plan.existing));
  }
}

Result<ReplacedFile> ToolFiles::write(const WritePlan& plan, std::string_view content, Existing existing) const {
  const OpenOutcome directory = openBeneath(workspace_.descriptor(), plan.existing.relative(), O_PATH | O_DIRECTORY);
  if (!directory.fd) {
    return toolError(ESTALE, plan.path, Use::kWriting, true);
  }
  const Result<FileIdentity> identity = identityOf(directory.fd.get());
  if (!identity || !(*identity == plan.existingIdentity)) {
    return identity ? toolError(ESTALE, plan.path, Use::kWriting, true) : identity.error();
  }
  Result<ReplacedFile> written =
      workspace_.replaceFile(plan.path, content, ContainedDirectory::Parents::kCreate, staging_,
                             expectedTarget(plan, existing), ContainedDirectory::Replacing::kWhole);
  if (written) {
    return written;
  }
  if (existing == Existing::kAsPlanned && hasErrno(written.error(), EEXIST)) {
    return toolError(ESTALE, plan.path, Use::kWriting, false);
  }
  if (hasErrno(written.error(), ELOOP) && !openParent(plan.path).fd) {
    return toolError(ENOTDIR, plan.path, Use::kWriting, true);
  }
  return toolError(std::move(written).error(), plan.path, Use::kWriting);
}

Result<ReplacedFile> ToolFiles::rewrite(const WorkspacePath& path, const FileIdentity& edited,
                                        std::string_view content) const {
  Result<ReplacedFile> written =
      workspace_.replaceFile(path, content, ContainedDirectory::Parents::kMustExist, staging_,
                             {ExpectedTarget::Kind::kFile, edited}, ContainedDirectory::Replacing::kWhole);
  if (written) {
    return written;
  }
  // It was there when the edit began.
  for (const int gone : {ENOENT, ENOTDIR, ELOOP, EISDIR}) {
    if (hasErrno(written.error(), gone)) {
      return toolError(ESTALE, path, Use::kWriting, false);
    }
  }
  return toolError(std::move(written).error(), path, Use::kWriting);
}

Error readingError(Error error, const WorkspacePath& path) {
  return toolError(std::move(error), path, Use::kReading);
}

}  // namespace stitchkit
