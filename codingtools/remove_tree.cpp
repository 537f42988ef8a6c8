#include "codingtools/remove_tree.h"

#include "codingtools/contained_open.h"
#include "codingtools/directory_reader.h"
#include "codingtools/file_error.h"
#include "rpc/base/unique_fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

namespace stitchkit {

namespace {

constexpr int kReadDirectory = O_RDONLY | O_DIRECTORY | O_NONBLOCK;
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

/// Walks down and up again with one descriptor. The way up is `..`, believed only when it leads to the directory that
/// was left on the way down: whoever moves a directory meanwhile gets the walk to start again at the top.
class TreeRemover {
 public:
  TreeRemover(UniqueFd top, const std::stop_token& stop) : top_(std::move(top)), stop_(stop) {}

  /// 0, errno, or ECANCELED.
  int run() {
    struct stat status {};
    if (::fstat(top_.get(), &status) != 0) {
      return errno;
    }
    grantAccess(top_.get(), status);
    levels_.push_back({status.st_dev, status.st_ino, {}, 0});
    int error = reader_.start(top_.get());
    bool clean = true;
    while (error == 0) {
      if (stop_.stop_requested()) {
        return ECANCELED;
      }
      const DirectoryReader::Entry* const entry = reader_.next();
      if (entry != nullptr) {
        clean = false;
        error = removeOne(*entry);
      } else if (reader_.error() != 0) {
        error = reader_.error();
      } else if (levels_.size() > 1) {
        error = leave();
      } else if (clean) {
        return 0;
      } else {
        // Done when a whole pass has found nothing.
        clean = true;
        error = disturbed(ENOTEMPTY);
        error = error == 0 ? reader_.start(top_.get()) : error;
      }
    }
    return error;
  }

 private:
  struct Level {
    dev_t device;
    ino_t inode;
    std::string name;  ///< in the level above
    off_t resume;      ///< where the level above goes on
  };

  [[nodiscard]] int current() const { return current_ ? current_.get() : top_.get(); }

  static void grantAccess(int fd, const struct stat& status) {
    if ((status.st_mode & S_IRWXU) != S_IRWXU) {
      // Not ours to change: then removing its entries says why not.
      static_cast<void>(::fchmod(fd, 0700));
    }
  }

  int disturbed(int error) { return ++disturbances_ > kMaxDisturbances ? error : 0; }

  int removeOne(const DirectoryReader::Entry& entry) {
    if (entry.type == DT_DIR) {
      return enter(entry.name, entry.next);
    }
    if (::unlinkat(current(), entry.name, 0) == 0 || errno == ENOENT) {
      return 0;
    }
    return errno == EISDIR ? enter(entry.name, entry.next) : errno;
  }

  int enter(const std::string& name, off_t resume) {
    OpenOutcome opened = openForRemoval(current(), name.c_str());
    if (opened.error == ENOENT) {
      return 0;
    }
    if (opened.error == ELOOP || opened.error == ENOTDIR) {
      return ::unlinkat(current(), name.c_str(), 0) == 0 || errno == ENOENT || errno == EISDIR ? 0 : errno;
    }
    struct stat status {};
    if (!opened.fd || ::fstat(opened.fd.get(), &status) != 0) {
      return opened.fd ? errno : opened.error;
    }
    grantAccess(opened.fd.get(), status);
    levels_.push_back({status.st_dev, status.st_ino, name, resume});
    current_ = std::move(opened.fd);
    return reader_.start(current());
  }

  int leave() {
    const Level left = std::move(levels_.back());
    levels_.pop_back();
    if (levels_.size() == 1) {
      current_.reset();
    } else {
      OpenOutcome up = openSegment(current(), "..", kReadDirectory);
      struct stat status {};
      if (!up.fd || ::fstat(up.fd.get(), &status) != 0 || status.st_dev != levels_.back().device ||
          status.st_ino != levels_.back().inode) {
        return startAgain();
      }
      current_ = std::move(up.fd);
    }
    if (::unlinkat(current(), left.name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) {
      return reader_.start(current(), left.resume);
    }
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) {
      return errno;
    }
    // Filled again, or something else in its place by now: read this directory once more.
    const int error = disturbed(ENOTEMPTY);
    return error != 0 ? error : reader_.start(current());
  }

  int startAgain() {
    levels_.resize(1);
    current_.reset();
    const int error = disturbed(EBUSY);
    return error != 0 ? error : reader_.start(top_.get());
  }

  UniqueFd top_;
  UniqueFd current_;  ///< none while at the top
  const std::stop_token& stop_;
  std::vector<Level> levels_;
  DirectoryReader reader_;
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
