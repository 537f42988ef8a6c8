#include "codingtools/tool_files.h"

#include "codingtools/contained_open.h"
#include "codingtools/file_error.h"
#include "codingtools/tool_path.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace stitchkit {

namespace {

enum class Use : bool { kReading, kWriting };

struct Words {
  ErrorKind kind;
  const char* message;
  const char* hint;
};

/// What cannot be where it was looked for. `parent`: it went wrong on the way to the last segment.
Words wordsFor(int error, Use use, bool parent) {
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
      return {ErrorKind::kConflict, "The file is not the one that was looked at any more",
              "It was replaced or moved meanwhile: read it again."};
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
  const Words words = wordsFor(error, use, parent);
  return Error(words.kind, words.message).withDetail("path", toolPathText(path)).withHint(words.hint);
}

/// From the errno in an engine's error; what is no path error (a full disk, a fault of ours) stays what it is.
Error toolError(Error error, const WorkspacePath& path, Use use) {
  if (error.kind != ErrorKind::kPath) {
    return error;
  }
  const auto* const name = std::get_if<std::string>(&error.details.front().second);
  for (const int known :
       {ENOENT, EACCES, EPERM, EROFS, ELOOP, ENOTDIR, EISDIR, EEXIST, ESTALE, ETXTBSY, ENAMETOOLONG}) {
    if (name != nullptr && *name == errnoName(known)) {
      return toolError(known, path, use, false);
    }
  }
  return toolError(ENXIO, path, use, false);
}

Result<FileIdentity> identityOf(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return fileError(errno, "fstat");
  }
  return FileIdentity::of(status);
}

}  // namespace

Result<OpenedFile> ToolFiles::open(const WorkspacePath& path) const {
  const OpenOutcome parent = openBeneath(workspace_.descriptor(), path.parent().relative(), O_PATH | O_DIRECTORY);
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
  const OpenOutcome parent = openBeneath(workspace_.descriptor(), path.parent().relative(), O_PATH | O_DIRECTORY);
  if (!parent.fd) {
    return toolError(parent.error, path, Use::kReading, true);
  }
  OpenOutcome opened = openSegment(parent.fd.get(), std::string(path.name()).c_str(), kFlags);
  return opened.fd ? Result<UniqueFd>(std::move(opened.fd)) : toolError(opened.error, path, Use::kReading, false);
}

Result<void> ToolFiles::confirm(const WorkspacePath& path, const FileIdentity& file) const {
  const Result<OpenedFile> now = open(path);
  if (!now || !(now->identity == file)) {
    return toolError(ESTALE, path, Use::kReading, false);
  }
  return {};
}

Result<WritePlan> ToolFiles::planWrite(const WorkspacePath& path) const {
  WritePlan plan{path, path.parent(), {}, {}};
  for (;; plan.existing = plan.existing.parent()) {
    const OpenOutcome directory = openBeneath(workspace_.descriptor(), plan.existing.relative(), O_PATH | O_DIRECTORY);
    if (directory.fd) {
      const Result<FileIdentity> identity = identityOf(directory.fd.get());
      if (!identity) {
        return identity.error();
      }
      plan.existingIdentity = *identity;
      std::reverse(plan.missingDirectories.begin(), plan.missingDirectories.end());
      return plan;
    }
    if (directory.error != ENOENT || plan.existing.isRoot()) {
      return toolError(directory.error, path, Use::kWriting, true);
    }
    plan.missingDirectories.push_back(toolPathText(plan.existing));
  }
}

Result<ReplacedFile> ToolFiles::write(const WritePlan& plan, std::string_view content, bool overwrite) const {
  const OpenOutcome directory = openBeneath(workspace_.descriptor(), plan.existing.relative(), O_PATH | O_DIRECTORY);
  if (!directory.fd) {
    return toolError(ESTALE, plan.path, Use::kWriting, true);
  }
  const Result<FileIdentity> identity = identityOf(directory.fd.get());
  if (!identity || !(*identity == plan.existingIdentity)) {
    return identity ? toolError(ESTALE, plan.path, Use::kWriting, true) : identity.error();
  }
  ExpectedTarget expected;
  expected.kind = overwrite ? ExpectedTarget::Kind::kAnything : ExpectedTarget::Kind::kNothing;
  Result<ReplacedFile> written =
      workspace_.replaceFile(plan.path, content, ContainedDirectory::Parents::kCreate, staging_, expected);
  if (!written) {
    return toolError(std::move(written).error(), plan.path, Use::kWriting);
  }
  return written;
}

Result<ReplacedFile> ToolFiles::rewrite(const WorkspacePath& path, const FileIdentity& edited,
                                        std::string_view content) const {
  Result<ReplacedFile> written = workspace_.replaceFile(path, content, ContainedDirectory::Parents::kMustExist,
                                                        staging_, {ExpectedTarget::Kind::kFile, edited});
  if (!written) {
    return toolError(std::move(written).error(), path, Use::kWriting);
  }
  return written;
}

Error readingError(Error error, const WorkspacePath& path) {
  return toolError(std::move(error), path, Use::kReading);
}

}  // namespace stitchkit
