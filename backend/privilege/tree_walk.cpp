#include "backend/privilege/tree_walk.h"

#include "backend/privilege/path_walk.h"

#include "rpc/base/unique_fd.h"

#include <dirent.h>
#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <tuple>
#include <vector>

namespace stitchkit {
namespace {

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;

// A mount is told by both: a bind mount of the same file system has the same device.
struct Mount {
  dev_t device = 0;
  std::uint64_t id = 0;  ///< 0 where the kernel does not say (before 5.8)

  friend bool operator==(const Mount&, const Mount&) = default;
};

Error walkFailure(std::string_view operation, const std::string& path, int failure) {
  return stateDirectoryFailure(operation, path, failure);
}

Result<Mount> mountOf(int descriptor, const struct stat& info, const std::string& path) {
  struct statx extended {};
  if (::statx(descriptor, "", AT_EMPTY_PATH, STATX_MNT_ID, &extended) != 0) {
    return walkFailure("statx", path, errno);
  }
  return Mount{info.st_dev, (extended.stx_mask & STATX_MNT_ID) != 0 ? extended.stx_mnt_id : 0};
}

struct CloseDirectory {
  void operator()(DIR* stream) const noexcept { ::closedir(stream); }
};

Result<std::vector<std::string>> namesIn(int directory, const std::string& path) {
  UniqueFd copy(::openat(directory, ".", kDirectoryFlags));
  const std::unique_ptr<DIR, CloseDirectory> stream(copy ? ::fdopendir(copy.get()) : nullptr);
  if (!stream) {
    return walkFailure("opendir", path, errno);
  }
  std::ignore = copy.release();  // the stream has it
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) {
      break;
    }
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) {
      names.emplace_back(entry->d_name);
    }
  }
  if (errno != 0) {
    return walkFailure("readdir", path, errno);
  }
  return names;
}

// One directory on the way from the top to where the walk stands.
struct Level {
  struct stat info {};
  std::vector<std::string> names;  ///< not yet visited
  std::size_t pathSize = 0;        ///< of the directory's own path
};

class TreeWalk {
 public:
  explicit TreeWalk(const TreeVisit& visit) : visit_(visit) {}

  Result<void> run(int top) {
    UniqueFd start(::openat(top, ".", kDirectoryFlags));
    struct stat info {};
    if (!start || ::fstat(start.get(), &info) != 0) {
      return walkFailure("open", ".", errno);
    }
    const auto mount = mountOf(start.get(), info, ".");
    if (!mount) {
      return mount.error();
    }
    mount_ = *mount;
    if (auto entered = enter(std::move(start), info); !entered) {
      return entered;
    }
    while (!levels_.empty()) {
      auto done = levels_.back().names.empty() ? leave() : next();
      if (!done) {
        return done;
      }
    }
    return {};
  }

 private:
  Result<void> enter(UniqueFd directory, const struct stat& info) {
    auto names = namesIn(directory.get(), path_);
    if (!names) {
      return names.error();
    }
    levels_.push_back({info, std::move(*names), path_.size()});
    current_ = std::move(directory);
    return {};
  }

  Result<void> next() {
    const std::string name = std::move(levels_.back().names.back());
    levels_.back().names.pop_back();
    path_.resize(levels_.back().pathSize);
    path_ += (path_.empty() ? "" : "/") + name;
    UniqueFd entry(::openat(current_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (!entry || ::fstat(entry.get(), &info) != 0) {
      return walkFailure("open", path_, errno);
    }
    const auto mount = mountOf(entry.get(), info, path_);
    if (!mount) {
      return mount.error();
    }
    if (*mount != mount_) {
      return Error(ErrorKind::kUnavailable, "Something is mounted inside the state directory")
          .withHint("Unmount it, or give the sidecar a directory of its own with --state-dir.")
          .withReason("state-directory-mount")
          .withPrivate(path_);
    }
    if (!S_ISDIR(info.st_mode)) {
      return visit_({entry.get(), info, path_});
    }
    UniqueFd directory(::openat(entry.get(), ".", kDirectoryFlags));
    if (!directory) {
      return walkFailure("open", path_, errno);
    }
    return enter(std::move(directory), info);
  }

  Result<void> leave() {
    const Level finished = std::move(levels_.back());
    levels_.pop_back();
    if (levels_.empty()) {
      return {};
    }
    path_.resize(finished.pathSize);
    const Level& parent = levels_.back();
    // The way up is the parent that was come from, or the tree was moved under the walk.
    UniqueFd above(::openat(current_.get(), "..", kDirectoryFlags));
    struct stat info {};
    if (!above || ::fstat(above.get(), &info) != 0) {
      return walkFailure("open ..", path_, errno);
    }
    if (info.st_dev != parent.info.st_dev || info.st_ino != parent.info.st_ino) {
      return walkFailure("moved", path_, ESTALE);
    }
    auto visited = visit_({current_.get(), finished.info, path_});
    current_ = std::move(above);
    return visited;
  }

  const TreeVisit& visit_;
  Mount mount_;
  std::vector<Level> levels_;
  UniqueFd current_;  ///< the directory of levels_.back()
  std::string path_;
};

}  // namespace

Result<void> walkTree(int top, const TreeVisit& visit) {
  return TreeWalk(visit).run(top);
}

}  // namespace stitchkit
