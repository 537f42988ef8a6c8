#include "backend/privilege/hand_over.h"

#include "backend/diagnosis/cause.h"
#include "backend/privilege/fs_identity.h"
#include "backend/privilege/path_walk.h"
#include "backend/privilege/tree_walk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <string_view>
#include <utility>

namespace stitchkit {
namespace {

constexpr mode_t kOwnMode = 0700;
constexpr mode_t kModeBits = 07777;
constexpr std::size_t kNamespaceDigits = 64;
constexpr unsigned kEntriesBetweenQuestions = 256;

Error inUse(std::string detail) {
  return Error(ErrorKind::kUnavailable, "The state directory holds other things than a sidecar's state")
      .withHint("Give the sidecar a directory of its own with --state-dir.")
      .withReason("state-directory-in-use")
      .withPrivate(std::move(detail));
}

Error wrongOwner(std::string detail) {
  return Error(ErrorKind::kUnavailable, "The state directory belongs to another user")
      .withHint("Give the sidecar a directory of its own with --state-dir, or run as its owner with --user.")
      .withReason("state-directory-owner")
      .withPrivate(std::move(detail));
}

bool isOurs(const std::string& topName, const struct stat& info) {
  const bool isNamespace =
      topName.size() == kNamespaceDigits && topName.find_first_not_of("0123456789abcdef") == std::string::npos;
  return S_ISDIR(info.st_mode) && (isNamespace || topName == "support");
}

// Counts how many of an inode's names lie in the tree. A name outside would be given away with it.
class LinkCount {
 public:
  void add(const struct stat& info, const std::string& path) {
    if (S_ISDIR(info.st_mode) || info.st_nlink < 2) {
      return;
    }
    auto& seen = seen_[{info.st_dev, info.st_ino}];
    seen.left = (seen.path.empty() ? info.st_nlink : seen.left) - 1;
    seen.path = path;
  }

  [[nodiscard]] Result<void> check() const {
    for (const auto& [inode, seen] : seen_) {
      if (seen.left != 0) {
        return inUse(seen.path + " has a hard link outside of the directory");
      }
    }
    return {};
  }

 private:
  struct Seen {
    nlink_t left = 0;
    std::string path;
  };
  std::map<std::pair<dev_t, ino_t>, Seen> seen_;
};

class Questions {
 public:
  explicit Questions(const KeepGoing& keepGoing) : keepGoing_(keepGoing) {}

  Result<void> ask() {
    if (++entries_ % kEntriesBetweenQuestions == 0 && !keepGoing_()) {
      return Error(ErrorKind::kCancelled, "The hand-over of the state directory was broken off");
    }
    return {};
  }

 private:
  const KeepGoing& keepGoing_;
  unsigned entries_ = 0;
};

// What root may give away, for one entry.
Result<void> checkEntry(const TreeEntry& entry, const TargetUser& user) {
  if (entry.path.find('/') == std::string::npos && !isOurs(entry.path, entry.info)) {
    return inUse(entry.path);
  }
  if (entry.info.st_uid != 0 && entry.info.st_uid != user.uid) {
    return wrongOwner(entry.path);
  }
  if (S_ISBLK(entry.info.st_mode) || S_ISCHR(entry.info.st_mode)) {
    return inUse(entry.path + " is a device");
  }
  return {};
}

Result<void> checkTree(int top, const TargetUser& user, Questions& questions) {
  LinkCount links;
  const auto walked = walkTree(top, [&](const TreeEntry& entry) -> Result<void> {
    if (auto checked = checkEntry(entry, user); !checked) {
      return checked;
    }
    links.add(entry.info, entry.path);
    return questions.ask();
  });
  return walked ? links.check() : walked;
}

Result<void> giveTree(int top, const TargetUser& user, Questions& questions) {
  return walkTree(top, [&](const TreeEntry& entry) -> Result<void> {
    if (auto checked = checkEntry(entry, user); !checked) {
      return checked;
    }
    if (::fchownat(entry.descriptor, "", user.uid, user.gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) {
      return stateDirectoryFailure("chown", entry.path, errno);
    }
    return questions.ask();
  });
}

Result<void> giveDirectory(const WalkEnd& end, mode_t formerMode, const TargetUser& user, const KeepGoing& keepGoing) {
  const UniqueFd top(::openat(end.directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!top) {
    return stateDirectoryFailure("open", end.path, errno);
  }
  Questions questions(keepGoing);
  // First without touching it: it may be a folder of the system's that was named by mistake.
  if (auto checked = checkTree(top.get(), user, questions); !checked) {
    return checked;
  }
  // Then root's alone, and looked at again: nobody can put a thing into it between this look and the gift.
  if (::fchmod(top.get(), kOwnMode) != 0) {
    return stateDirectoryFailure("chmod", end.path, errno);
  }
  if (auto checked = checkTree(top.get(), user, questions); !checked) {
    ::fchmod(top.get(), formerMode);
    return checked;
  }
  if (auto given = giveTree(top.get(), user, questions); !given) {
    return given;
  }
  if (::fchown(top.get(), user.uid, user.gid) != 0) {
    return stateDirectoryFailure("chown", end.path, errno);
  }
  return {};
}

Result<void> settleOwner(const WalkEnd& end, const TargetUser& user, const KeepGoing& keepGoing) {
  struct stat info {};
  if (::fstat(end.directory.get(), &info) != 0) {
    return stateDirectoryFailure("fstat", end.path, errno);
  }
  if (info.st_uid == user.uid) {
    return {};
  }
  if (info.st_uid != 0) {
    return wrongOwner(end.path + " belongs to uid " + std::to_string(info.st_uid));
  }
  // Such as /tmp: whatever it holds at this moment, it is everybody's.
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return inUse(end.path + " is writable for others");
  }
  return giveDirectory(end, info.st_mode & kModeBits, user, keepGoing);
}

}  // namespace

Result<void> checkReachable(const std::string& path, const TargetUser& user) {
  const FsIdentity asUser(user);
  auto end = walkTo(path, MissingDirectory::kStop);
  if (!end) {
    return end.error();
  }
  // A folder that is reached may still not be searched: its own right of search is asked for, too.
  const UniqueFd inside(::openat(end->directory.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!inside && errno == EACCES && !end->whole) {
    return unavailableBecause("The state directory could not be used", Cause::kStateDirectoryNotSearchable)
        .withPrivate(end->path + " is not searchable");
  }
  return {};
}

Result<void> handOverStateDirectory(const std::string& path, const TargetUser& user, const KeepGoing& keepGoing) {
  // Before anything is made: folders that the user cannot reach would only be litter.
  if (auto reachable = checkReachable(path, user); !reachable) {
    return reachable;
  }
  const auto end = walkTo(path, MissingDirectory::kMake);
  if (!end) {
    return end.error();
  }
  if (auto settled = settleOwner(*end, user, keepGoing); !settled) {
    return settled;
  }
  return checkReachable(path, user);
}

}  // namespace stitchkit
