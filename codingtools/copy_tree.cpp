#include "codingtools/copy_tree.h"

#include "codingtools/contained_open.h"
#include "codingtools/directory_reader.h"
#include "codingtools/file_error.h"
#include "codingtools/regular_file.h"
#include "rpc/base/unique_fd.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

namespace stitchkit {

namespace {

/// Up to this size one read and one write do the copy, without asking what the file system can do.
constexpr std::size_t kCopyBytes = 64UL * 1024;

class TreeCopier {
 public:
  TreeCopier(int from, int to, const std::stop_token& stop) : from_(from), to_(to), stop_(stop) {}

  /// 0, errno, or ECANCELED.
  int run() {
    int error = 0;
    while (error == 0 && !pending_.empty()) {
      const std::string directory = std::move(pending_.back());
      pending_.pop_back();
      error = copyDirectory(directory);
    }
    return error;
  }

 private:
  int copyDirectory(const std::string& relative) {
    const OpenOutcome source = openBeneath(from_, relative, O_RDONLY | O_DIRECTORY);
    const OpenOutcome target = openBeneath(to_, relative, O_RDONLY | O_DIRECTORY);
    if (!source.fd || !target.fd) {
      return source.fd ? target.error : source.error;
    }
    int error = reader_.start(source.fd.get());
    while (error == 0) {
      const DirectoryReader::Entry* const entry = reader_.next();
      if (entry == nullptr) {
        return reader_.error();
      }
      error = stop_.stop_requested() ? ECANCELED : copyEntry(source.fd.get(), target.fd.get(), relative, entry->name);
    }
    return error;
  }

  int copyEntry(int sourceDirectory, int targetDirectory, const std::string& relative, const char* name) {
    const OpenOutcome source = openSegment(sourceDirectory, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    struct stat status {};
    if (!source.fd || ::fstat(source.fd.get(), &status) != 0) {
      return source.fd ? errno : source.error;
    }
    const mode_t mode = status.st_mode & 0777U;
    if (S_ISDIR(status.st_mode)) {
      pending_.push_back(relative.empty() ? std::string(name) : relative + '/' + name);
      return ::mkdirat(targetDirectory, name, mode | S_IRWXU) == 0 ? setDirectoryMode(targetDirectory, name, mode)
                                                                   : errno;
    }
    if (!S_ISREG(status.st_mode)) {
      return ENXIO;
    }
    const OpenOutcome target = openSegment(targetDirectory, name, O_WRONLY | O_CREAT | O_EXCL, mode);
    if (!target.fd) {
      return target.error;
    }
    const int error = copyContent(source.fd.get(), target.fd.get(), static_cast<std::size_t>(status.st_size));
    return error == 0 && outsideOwner(mode) && ::fchmod(target.fd.get(), mode) != 0 ? errno : error;
  }

  /// Bits that a usual umask takes away; those of the owner it leaves alone.
  static bool outsideOwner(mode_t mode) { return (mode & ~static_cast<mode_t>(S_IRWXU)) != 0; }

  /// Write permission for us stays on: the directory is still to be filled.
  static int setDirectoryMode(int parent, const char* name, mode_t mode) {
    return outsideOwner(mode) && ::fchmodat(parent, name, mode | S_IRWXU, 0) != 0 ? errno : 0;
  }

  int copyContent(int source, int target, std::size_t size) {
    if (size > kCopyBytes) {
      if (canClone_ && ::ioctl(target, FICLONE, source) == 0) {
        return 0;
      }
      canClone_ = false;
      const int error = canCopyRange_ ? copyRange(source, target) : EOPNOTSUPP;
      if (error == 0 || error == ENOSPC || error == EDQUOT || error == EIO) {
        return error;
      }
      canCopyRange_ = false;
    }
    return readAndWrite(source, target);
  }

  /// Leaves both offsets where it stopped, so that reading and writing can go on from there.
  static int copyRange(int source, int target) {
    for (;;) {
      const ssize_t copied = ::copy_file_range(source, nullptr, target, nullptr, 1UL << 30U, 0);
      if (copied == 0) {
        return 0;
      }
      if (copied < 0 && errno != EINTR) {
        return errno;
      }
    }
  }

  int readAndWrite(int source, int target) {
    for (;;) {
      const ssize_t got = ::read(source, buffer_.get(), kCopyBytes);
      if (got < 0 && errno != EINTR) {
        return errno;
      }
      if (got == 0) {
        return 0;
      }
      const int error = got < 0 ? 0 : writeAll(target, {buffer_.get(), static_cast<std::size_t>(got)});
      if (error != 0) {
        return error;
      }
    }
  }

  int from_;
  int to_;
  const std::stop_token& stop_;
  std::vector<std::string> pending_{std::string()};  ///< directories whose entries are to be copied
  DirectoryReader reader_;
  std::unique_ptr<char[]> buffer_ = std::make_unique_for_overwrite<char[]>(kCopyBytes);
  bool canClone_ = true;
  bool canCopyRange_ = true;
};

}  // namespace

Result<void> copyTree(int from, int to, const std::stop_token& stop) {
  const int error = TreeCopier(from, to, stop).run();
  if (error == ECANCELED) {
    return fileWorkCancelled();
  }
  if (error == ENOSPC || error == EDQUOT) {
    return fileError(error, "copy");
  }
  if (error != 0) {
    return internalError("The template could not be copied", "copy", error);
  }
  return {};
}

}  // namespace stitchkit
