// Where files become complete before they are moved into a workspace.
#pragma once

#include "codingtools/durability.h"
#include "rpc/base/unique_fd.h"

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace stitchkit {

/// A file that nobody else has open yet, 0600 and empty at first. What has its name in the staging directory at the
/// end is removed.
class StagedFile {
 public:
  StagedFile(int directory, std::string name, UniqueFd file, Durability durability)
      : directory_(directory), name_(std::move(name)), file_(std::move(file)), durability_(durability) {}
  StagedFile(StagedFile&& other) noexcept;
  StagedFile& operator=(StagedFile&&) = delete;
  ~StagedFile();

  /// The whole content, in parts that follow each other; as durable as is asked for. 0 or errno.
  int write(std::initializer_list<std::string_view> parts, unsigned mode);
  /// 0 or errno. The staging directory's name for it is gone then. Without `mayReplace` whatever stands there is
  /// EEXIST.
  int moveTo(int parent, const std::string& name, bool mayReplace);
  /// After moveTo(): makes the name that it has in `parent` as durable as is asked for. 0 or errno.
  [[nodiscard]] int settleName(int parent) const { return durability_.settleEntries(parent, file_.get()); }
  /// The open file; nothing more can be written then.
  UniqueFd takeFile() { return std::move(file_); }

 private:
  int directory_;
  std::string name_;  ///< empty when it was moved away
  UniqueFd file_;
  Durability durability_;
};

/// What a replacement leaves to do when nobody waits any more.
class ReplacedFile {
 public:
  ReplacedFile() = default;
  ReplacedFile(UniqueFd former, UniqueFd current) : former_(std::move(former)), current_(std::move(current)) {}

  /// Lets the former file go, which makes the file system free it, and has the new one written out soon, without
  /// waiting: a loss of power must not leave an empty file, as ext4 sees to by itself (`auto_da_alloc`) but for space
  /// that was allocated before. Blocks on the disk.
  void settle();

 private:
  UniqueFd former_;
  UniqueFd current_;
};

/// A directory on the workspace's file system that no guest and no other process writes to. Thread-safe: for many
/// writers at once. After a kill it may hold leftovers, and after prepare() a file that was not used.
class StagingDirectory {
 public:
  /// Takes a descriptor of a directory, O_PATH or not.
  explicit StagingDirectory(UniqueFd directory, Durability durability = {})
      : directory_(std::move(directory)), durability_(durability) {}

  [[nodiscard]] const Durability& durability() const noexcept { return durability_; }

  /// The entries of a directory on this file system, as durable as is asked for. 0 or errno.
  [[nodiscard]] int settleEntries(int directory) const {
    return durability_.settleEntries(directory, directory_.get());
  }

  struct Made {
    std::optional<StagedFile> file;
    int error = 0;  ///< errno when there is no file
  };
  /// The file must not outlive the directory.
  Made make();
  /// Makes the file that the next make() gives, unless there is one, with the space of a small one: finding an inode
  /// and a block may take a file system longer than all the rest of a write, and is done here while nobody waits. A
  /// failure is left for make() to tell.
  void prepare();

 private:
  std::string nextName() { return "write-" + std::to_string(counter_.fetch_add(1, std::memory_order_relaxed)); }

  UniqueFd directory_;
  Durability durability_;
  std::atomic<std::uint64_t> counter_{0};
  std::mutex mutex_;
  std::string spare_;  ///< guarded by mutex_: the name of what prepare() made, or empty
};

}  // namespace stitchkit
