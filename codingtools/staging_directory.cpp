#include "codingtools/staging_directory.h"

#include "codingtools/contained_open.h"
#include "codingtools/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

namespace stitchkit {

namespace {

constexpr int kCreate = O_WRONLY | O_CREAT | O_EXCL;
constexpr mode_t kPrivate = 0600;
/// What every file that is not empty takes on most file systems.
constexpr off_t kPreparedBytes = 4096;

}  // namespace

StagedFile::StagedFile(StagedFile&& other) noexcept
    : directory_(other.directory_),
      name_(std::exchange(other.name_, {})),
      file_(std::move(other.file_)),
      durability_(other.durability_) {}

StagedFile::~StagedFile() {
  if (!name_.empty()) {
    ::unlinkat(directory_, name_.c_str(), 0);
  }
}

int StagedFile::write(std::initializer_list<std::string_view> parts, unsigned mode) {
  int error = 0;
  bool empty = true;
  for (const std::string_view part : parts) {
    empty = empty && part.empty();
    error = error == 0 && !part.empty() ? writeAll(file_.get(), part) : error;
  }
  if (empty && ::ftruncate(file_.get(), 0) != 0) {  // gives prepared space back
    return errno;
  }
  if (error == 0 && ::fchmod(file_.get(), mode) != 0) {
    return errno;
  }
  return error == 0 ? durability_.settleFile(file_.get()) : error;
}

int StagedFile::moveTo(int parent, const std::string& name, bool mayReplace) {
  const unsigned flags = mayReplace ? 0 : RENAME_NOREPLACE;
  if (::renameat2(directory_, name_.c_str(), parent, name.c_str(), flags) != 0) {
    return errno;
  }
  name_.clear();
  return 0;
}

void ReplacedFile::settle() {
  former_.reset();
  if (current_) {
    ::sync_file_range(current_.get(), 0, 0, SYNC_FILE_RANGE_WRITE);
    current_.reset();
  }
}

StagingDirectory::Made StagingDirectory::make() {
  std::string name;
  {
    const std::lock_guard lock(mutex_);
    name = std::exchange(spare_, {});
  }
  OpenOutcome opened;
  if (!name.empty()) {
    opened = openSegment(directory_.get(), name.c_str(), O_WRONLY);
  }
  if (!opened.fd) {
    name = nextName();
    opened = openSegment(directory_.get(), name.c_str(), kCreate, kPrivate);
  }
  if (!opened.fd) {
    return {std::nullopt, opened.error};
  }
  return {StagedFile(directory_.get(), std::move(name), std::move(opened.fd), durability_), 0};
}

void StagingDirectory::prepare() {
  const std::lock_guard lock(mutex_);
  if (!spare_.empty()) {
    return;
  }
  std::string name = nextName();
  if (const OpenOutcome made = openSegment(directory_.get(), name.c_str(), kCreate, kPrivate); made.fd) {
    ::fallocate(made.fd.get(), FALLOC_FL_KEEP_SIZE, 0, kPreparedBytes);
    spare_ = std::move(name);
  }
}

}  // namespace stitchkit
