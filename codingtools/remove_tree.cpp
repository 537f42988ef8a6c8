#include "codingtools/remove_tree.h"

#include "codingtools/contained_open.h"
#include "codingtools/directory_reader.h"
#include "codingtools/file_error.h"
#include "rpc/base/unique_fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

namespace stitchkit {

namespace {

/// How often somebody may get in the way (fill a directory that was just emptied, move one away) before we give up.
constexpr int kMaxDisturbances = 1000;

/// Opens a directory for reading; one of ours that lacks permission bits gets them.
OpenOutcome openForRemoval(int parent, const char* name) {
  OpenOutcome opened = openSegment(parent, name, kReadDirectory);
  if (opened.error != EACCES) {
    return opened;
  }
  const OpenOutcome place = openSegment(parent, name, O_PATH | O_DIRECTORY);
  if (!place.fd) {
    return {UniqueFd(), place.error};
  }
  // Through the descriptor, so that a link put in the directory's place cannot lead the change elsewhere.
  const std::string self = "/proc/self/fd/" + std::to_string(place.fd.get());
  if (::chmod(self.c_str(), 0700) != 0) {
    return {UniqueFd(), EACCES};
  }
  return openSegment(parent, name, kReadDirectory);
}

/// Walks down and up again. The directories of the last few levels stay open; for one above them the way up is `..`,
/// believed only when it leads to the directory that was left on the way down: whoever moves a directory meanwhile gets
/// the walk to start again at the top.
class TreeRemover {
 public:
  TreeRemover(UniqueFd top, const std::stop_token& stop) : top_(std::move(top)), stop_(stop) {}

  /// 0, errno, or ECANCELED.
  int run() {
    int error = startAtTop();
    while (error == 0) {
      if (stop_.stop_requested()) {
        return ECANCELED;
      }
      const DirectoryReader::Entry* const entry = current().reader.next();
      if (entry != nullptr) {
        clean_ = false;
        error = removeOne(*entry);
      } else if (current().reader.error() != 0) {
        error = current().reader.error();
      } else if (levels_.size() > 1) {
        error = leave();
      } else if (clean_) {
        return 0;
      } else {
        // Done when a whole pass has found nothing.
        error = disturbed(ENOTEMPTY);
        error = error == 0 ? startAtTop() : error;
      }
    }
    return error;
  }

 private:
  /// A directory on the way from the top to where we are.
  struct Level {
    dev_t device;
    ino_t inode;
    std::string name;  ///< in the level above
    off_t resume;      ///< where the level above goes on
  };
  /// An open directory and how far it has been read.
  struct Reading {
    std::size_t depth = 0;
    UniqueFd directory;
    DirectoryReader reader;
  };
  static constexpr std::size_t kOpenLevels = 8;

  Reading& reading(std::size_t depth) { return readings_[depth % kOpenLevels]; }
  Reading& current() { return reading(levels_.size() - 1); }
  int currentDirectory() { return current().directory.get(); }

  int disturbed(int error) { return ++disturbances_ > kMaxDisturbances ? error : 0; }

  /// Makes `directory` the place of the deepest level, read from `position` on.
  int read(UniqueFd directory, off_t position) {
    Reading& place = current();
    place.depth = levels_.size() - 1;
    place.directory = std::move(directory);
    return place.reader.start(place.directory.get(), position);
  }

  int startAtTop() {
    levels_.clear();
    clean_ = true;
    struct stat status {};
    if (::fstat(top_.get(), &status) == 0) {
      grantAccess(top_.get(), status);
    }
    OpenOutcome opened = openSegment(top_.get(), ".", kReadDirectory);
    return opened.fd ? descend(std::move(opened.fd), {}, 0) : opened.error;
  }

  static void grantAccess(int directory, const struct stat& status) {
    if ((status.st_mode & S_IRWXU) != S_IRWXU) {
      // Not ours to change: then removing its entries says why not.
      static_cast<void>(::fchmod(directory, 0700));
    }
  }

  int descend(UniqueFd directory, std::string name, off_t resume) {
    struct stat status {};
    if (::fstat(directory.get(), &status) != 0) {
      return errno;
    }
    grantAccess(directory.get(), status);
    levels_.push_back({status.st_dev, status.st_ino, std::move(name), resume});
    return read(std::move(directory), 0);
  }

  int removeOne(const DirectoryReader::Entry& entry) {
    if (entry.type == DT_DIR) {
      return enter(entry.name, entry.next);
    }
    if (::unlinkat(currentDirectory(), entry.name, 0) == 0 || errno == ENOENT) {
      return 0;
    }
    return errno == EISDIR ? enter(entry.name, entry.next) : errno;
  }

  int enter(const std::string& name, off_t resume) {
    OpenOutcome opened = openForRemoval(currentDirectory(), name.c_str());
    if (opened.error == ENOENT) {
      return 0;
    }
    if (opened.error == ELOOP || opened.error == ENOTDIR) {
      // Something else by now. What is a directory once more, the next pass finds.
      const bool gone = ::unlinkat(currentDirectory(), name.c_str(), 0) == 0 || errno == ENOENT || errno == EISDIR;
      return gone ? 0 : errno;
    }
    return opened.fd ? descend(std::move(opened.fd), name, resume) : opened.error;
  }

  int leave() {
    const Level left = std::move(levels_.back());
    levels_.pop_back();
    const std::size_t depth = levels_.size() - 1;
    if (reading(depth).depth != depth) {
      OpenOutcome up = depth == 0 ? openSegment(top_.get(), ".", kReadDirectory)
                                  : openSegment(reading(depth + 1).directory.get(), "..", kReadDirectory);
      if (!up.fd || !isLevel(up.fd.get(), levels_.back())) {
        const int error = disturbed(EBUSY);
        return error != 0 ? error : startAtTop();
      }
      if (const int error = read(std::move(up.fd), left.resume); error != 0) {
        return error;
      }
    }
    if (::unlinkat(currentDirectory(), left.name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) {
      return 0;
    }
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) {
      return errno;
    }
    // Filled again, or something else in its place by now: read this directory once more.
    const int error = disturbed(ENOTEMPTY);
    return error != 0 ? error : current().reader.start(currentDirectory());
  }

  static bool isLevel(int directory, const Level& level) {
    struct stat status {};
    return ::fstat(directory, &status) == 0 && status.st_dev == level.device && status.st_ino == level.inode;
  }

  UniqueFd top_;
  const std::stop_token& stop_;
  std::vector<Level> levels_;
  std::array<Reading, kOpenLevels> readings_;
  bool clean_ = true;  ///< nothing was found since the top was last begun
  int disturbances_ = 0;
};

Result<void> outcome(int error) {
  if (error == ECANCELED) {
    return fileWorkCancelled();
  }
  if (error != 0) {
    return fileError(error, "remove");
  }
  return {};
}

}  // namespace

Result<void> removeEntriesOf(int directory, const std::stop_token& stop) {
  OpenOutcome opened = openForRemoval(directory, ".");
  if (!opened.fd) {
    return fileError(opened.error, "open directory");
  }
  return outcome(TreeRemover(std::move(opened.fd), stop).run());
}

Result<void> removeEntry(int parent, const char* name, const std::stop_token& stop) {
  for (int attempt = 0; attempt < kMaxDisturbances; ++attempt) {
    if (::unlinkat(parent, name, 0) == 0 || errno == ENOENT) {
      return {};
    }
    if (errno != EISDIR) {
      return fileError(errno, "unlinkat");
    }
    OpenOutcome opened = openForRemoval(parent, name);
    if (opened.error == ELOOP || opened.error == ENOTDIR || opened.error == ENOENT) {
      continue;
    }
    if (!opened.fd) {
      return fileError(opened.error, "open directory");
    }
    if (const int error = TreeRemover(std::move(opened.fd), stop).run(); error != 0) {
      return outcome(error);
    }
    if (::unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) {
      return {};
    }
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) {
      return fileError(errno, "rmdir");
    }
  }
  return fileError(ENOTEMPTY, "rmdir");
}

}  // namespace stitchkit
