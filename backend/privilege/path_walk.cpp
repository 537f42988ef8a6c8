#include "backend/privilege/path_walk.h"

#include "backend/diagnosis/cause.h"
#include "backend/diagnosis/set_up_cause.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <deque>
#include <optional>

namespace stitchkit {
namespace {

constexpr int kLinksMax = 40;  // the kernel's own limit for one path
constexpr int kOpenFlags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
constexpr mode_t kParentMode = 0755;
constexpr mode_t kLastMode = 0700;

constexpr const char* kNotUsable = "The state directory could not be used";

Error badPath(std::string detail) {
  return unavailableBecause(kNotUsable, Cause::kStateDirectoryPath).withPrivate(std::move(detail));
}

Error foreignLink(const std::string& path) {
  return Error(ErrorKind::kUnavailable, "The state directory's path holds a symbolic link that root does not own")
      .withHint("Give the directory's real path with --state-dir.")
      .withReason("state-directory-link")
      .withPrivate(path);
}

Error notSearchable(const std::string& folder) {
  return unavailableBecause(kNotUsable, Cause::kStateDirectoryNotSearchable).withPrivate(folder + " is not searchable");
}

void prepend(std::deque<std::string>& components, std::string_view path) {
  std::deque<std::string> parts;
  while (!path.empty()) {
    const auto slash = path.find('/');
    const auto part = path.substr(0, slash);
    if (!part.empty() && part != ".") {
      parts.emplace_back(part);
    }
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  components.insert(components.begin(), parts.begin(), parts.end());
}

// The state of one walk.
class Walk {
 public:
  Walk(std::string_view path, MissingDirectory missing) : missing_(missing) { prepend(rest_, path); }

  Result<WalkEnd> run() {
    if (auto started = toRoot(); !started) {
      return started.error();
    }
    while (!rest_.empty()) {
      const std::string name = std::move(rest_.front());
      rest_.pop_front();
      if (name == "..") {
        return badPath("`..` below " + shown());
      }
      const auto stepped = step(name);
      if (!stepped) {
        return stepped.error();
      }
      if (!*stepped) {
        end_.whole = false;
        break;
      }
    }
    end_.path = shown();
    return std::move(end_);
  }

 private:
  Result<void> toRoot() {
    end_.directory.reset(::open("/", kOpenFlags | O_DIRECTORY));
    end_.path.clear();
    end_.made = false;
    if (!end_.directory) {
      return stateDirectoryFailure("open", "/", errno);
    }
    return {};
  }

  // False: it is missing and stays so.
  Result<bool> step(const std::string& name) {
    UniqueFd next(::openat(end_.directory.get(), name.c_str(), kOpenFlags));
    bool made = false;
    if (!next && errno == ENOENT && missing_ == MissingDirectory::kMake) {
      if (auto done = make(name, made); !done) {
        return done.error();
      }
      next.reset(::openat(end_.directory.get(), name.c_str(), kOpenFlags));
    }
    if (!next) {
      return errno == ENOENT ? Result<bool>(false) : Result<bool>(openFailure(name, errno));
    }
    struct stat info {};
    if (::fstat(next.get(), &info) != 0) {
      return stateDirectoryFailure("fstat", shown() + "/" + name, errno);
    }
    if (S_ISLNK(info.st_mode)) {
      return follow(next, info, name);
    }
    if (!S_ISDIR(info.st_mode)) {
      return badPath(shown() + "/" + name + " is not a directory");
    }
    end_.directory = std::move(next);
    end_.path += "/" + name;
    end_.made = made;
    return true;
  }

  Error openFailure(const std::string& name, int failure) const {
    if (failure == EACCES) {
      return notSearchable(shown());
    }
    if (failure == ENAMETOOLONG) {
      return badPath("a name is too long");
    }
    return stateDirectoryFailure("open", shown() + "/" + name, failure);
  }

  Result<void> make(const std::string& name, bool& made) {
    const mode_t mode = rest_.empty() ? kLastMode : kParentMode;
    made = ::mkdirat(end_.directory.get(), name.c_str(), mode) == 0;
    // Somebody else may have made it meanwhile; what it is the caller's open tells.
    if (!made && errno != EEXIST) {
      return stateDirectoryFailure("mkdir", shown() + "/" + name, errno);
    }
    if (!made) {
      return {};
    }
    // The umask must not make the way down unsearchable.
    const UniqueFd fresh(::openat(end_.directory.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fresh || ::fchmod(fresh.get(), mode) != 0) {
      return stateDirectoryFailure("chmod", shown() + "/" + name, errno);
    }
    return {};
  }

  Result<bool> follow(const UniqueFd& link, const struct stat& info, const std::string& name) {
    if (info.st_uid != 0) {
      return foreignLink(shown() + "/" + name);
    }
    std::array<char, PATH_MAX> target{};
    const ssize_t size = ::readlinkat(link.get(), "", target.data(), target.size());
    if (size < 0 || static_cast<std::size_t>(size) == target.size() || ++links_ > kLinksMax) {
      return badPath("the link " + shown() + "/" + name + " cannot be followed");
    }
    const std::string_view text(target.data(), static_cast<std::size_t>(size));
    prepend(rest_, text);
    if (text.substr(0, 1) == "/") {
      if (auto started = toRoot(); !started) {
        return started.error();
      }
    }
    return true;
  }

  [[nodiscard]] std::string shown() const { return end_.path.empty() ? "/" : end_.path; }

  MissingDirectory missing_;
  std::deque<std::string> rest_;
  WalkEnd end_;
  int links_ = 0;
};

}  // namespace

Result<WalkEnd> walkTo(std::string_view path, MissingDirectory missing) {
  if (path.substr(0, 1) != "/" || path.size() >= PATH_MAX || path.find('\0') != std::string_view::npos) {
    return badPath("not an absolute path, or too long");
  }
  return Walk(path, missing).run();
}

Error stateDirectoryFailure(std::string_view operation, std::string_view path, int failure) {
  // What is not known shows itself where something is to be written, and that is said, too.
  const Cause cause = causeOfStateDirectory(std::string(path), failure).value_or(Cause::kStateDirectoryNotWritable);
  return unavailableBecause(kNotUsable, cause)
      .withPrivate(std::string(operation) + ' ' + std::string(path) + ": " + errnoName(failure));
}

}  // namespace stitchkit
