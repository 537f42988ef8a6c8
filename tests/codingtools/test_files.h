// What the tests of the file engine and of the storage share.
#pragma once

#include "codingtools/contained_directory.h"
#include "codingtools/remove_tree.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace stitchkit::test {

inline constexpr unsigned kOrdinaryUser = 65534;

/// A fresh directory, gone with the object whatever is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const char* const base = std::getenv("TMPDIR");
    path_ = std::string(base != nullptr ? base : "/tmp") + "/sandbox-test-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) {
      throw std::runtime_error("mkdtemp " + path_);
    }
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { static_cast<void>(removeEntry(AT_FDCWD, path_.c_str())); }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + '/' + name; }

 private:
  std::string path_;
};

inline void writeText(const std::string& path, const std::string& text, unsigned mode = 0644) {
  std::ofstream(path, std::ios::binary) << text;
  std::filesystem::permissions(path, static_cast<std::filesystem::perms>(mode));
}

inline std::string readText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline bool exists(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

inline unsigned modeOf(const std::string& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mode & 07777U;
}

inline std::string errnoOf(const Error& error) {
  for (const auto& [name, value] : error.details) {
    if (name == "errno") {
      return std::get<std::string>(value);
    }
  }
  return {};
}

inline std::int64_t numberOf(const Error& error, const std::string& wanted) {
  for (const auto& [name, value] : error.details) {
    if (name == wanted) {
      return std::get<std::int64_t>(value);
    }
  }
  return -1;
}

/// Expects kPath with this errno.
template <class T>
void requirePathError(const Result<T>& result, const std::string& name) {
  REQUIRE(result.has_error());
  INFO(result.error().message << " " << result.error().privateDetail);
  REQUIRE(result.error().kind == ErrorKind::kPath);
  REQUIRE(errnoOf(result.error()) == name);
}

template <class T>
void requireOk(const Result<T>& result) {
  INFO((result.has_error() ? result.error().message + " " + result.error().privateDetail : std::string()));
  REQUIRE(result.has_value());
}

/// A process of its own; -1 in none. `work` returns its exit code.
template <class Work>
pid_t startChild(Work work) {
  // Not fork: ThreadSanitizer would give the child a thread more, with which no user namespace can be entered.
  const pid_t child = ::_Fork();
  if (child == 0) {
    int code = 99;
    try {
      code = work();
    } catch (...) {
    }
    ::_exit(code);
  }
  return child;
}

/// The exit code, or 128 + signal.
inline int waitFor(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

template <class Work>
int inChild(Work work) {
  return waitFor(startChild(std::move(work)));
}

/// Runs `work` as somebody whom permission bits bind. Its exit code.
template <class Work>
int asOrdinaryUser(Work work) {
  return inChild([&] {
    if (::geteuid() == 0 &&
        (::setgroups(0, nullptr) != 0 || ::setresgid(kOrdinaryUser, kOrdinaryUser, kOrdinaryUser) != 0 ||
         ::setresuid(kOrdinaryUser, kOrdinaryUser, kOrdinaryUser) != 0)) {
      return 98;
    }
    return work();
  });
}

/// Gives a directory to whom asOrdinaryUser() becomes.
inline void handOver(const std::string& path) {
  if (::geteuid() == 0) {
    REQUIRE(::chown(path.c_str(), kOrdinaryUser, kOrdinaryUser) == 0);
  }
}

/// Mounts a tmpfs in a mount namespace of this process's own (for a child). False where that is not permitted.
inline bool mountTmpfs(const std::string& path, const char* options) {
  const std::string user = std::to_string(::geteuid());
  const std::string group = std::to_string(::getegid());
  const bool root = ::geteuid() == 0;
  if (::unshare(CLONE_NEWNS | (root ? 0 : CLONE_NEWUSER)) != 0) {
    return false;
  }
  if (!root) {
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << user << ' ' << user << " 1";
    std::ofstream("/proc/self/gid_map") << group << ' ' << group << " 1";
  }
  return ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", path.c_str(), "tmpfs", 0, options) == 0;
}

/// A workspace with a staging directory beside it, as a session has.
struct Workspace {
  TemporaryDirectory base;
  std::string path = base / "workspace";
  std::string stagingPath = base / "staging";
  std::string outside = base / "outside";

  Workspace() {
    for (const std::string& directory : {path, stagingPath, outside}) {
      REQUIRE(::mkdir(directory.c_str(), 0700) == 0);
    }
  }
  [[nodiscard]] ContainedDirectory open() const { return std::move(ContainedDirectory::open(path)).value(); }
  [[nodiscard]] StagingDirectory staging() const {
    return StagingDirectory(UniqueFd(::open(stagingPath.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)));
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path + '/' + name; }
};

/// A file, and the directories above it.
inline void put(const Workspace& workspace, const std::string& path, const std::string& text = "x") {
  std::filesystem::create_directories(std::filesystem::path(workspace / path).parent_path());
  writeText(workspace / path, text);
}

inline WorkspacePath at(const std::string& text) {
  return WorkspacePath::parse(text).value();
}

}  // namespace stitchkit::test
