#include "tests/support/scratch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

namespace stitchkit::testing {
namespace {

void must(bool done, const std::string& what) {
  if (!done) {
    throw std::system_error(errno, std::generic_category(), what);
  }
}

// A folder that denies its owner the way in cannot be emptied by an ordinary user.
void openUp(const std::string& path) {
  std::error_code failure;
  const auto options = std::filesystem::directory_options::skip_permission_denied;
  for (auto entry = std::filesystem::recursive_directory_iterator(path, options, failure);
       !failure && entry != std::filesystem::recursive_directory_iterator(); entry.increment(failure)) {
    if (entry->is_directory(failure) && !entry->is_symlink(failure)) {
      ::chmod(entry->path().c_str(), 0700);
    }
  }
}

}  // namespace

ScratchFolder::ScratchFolder(std::optional<uid_t> owner) : path_("/tmp/stitchkit-test-XXXXXX") {
  must(::mkdtemp(path_.data()) != nullptr, "mkdtemp");
  must(::chmod(path_.c_str(), 0755) == 0, "chmod");
  if (owner && ::geteuid() == 0) {
    must(::chown(path_.c_str(), *owner, *owner) == 0, "chown");
  }
}

ScratchFolder::~ScratchFolder() {
  std::error_code failure;
  std::filesystem::remove_all(path_, failure);
  if (failure) {
    openUp(path_);
    std::filesystem::remove_all(path_, failure);
  }
}

void writeFile(const std::string& path, std::string_view text, mode_t mode) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  must(file >= 0, "open " + path);
  const ssize_t written = ::write(file, text.data(), text.size());
  ::close(file);
  must(written == static_cast<ssize_t>(text.size()), "write " + path);
}

std::string readFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    throw std::runtime_error("cannot read " + path);
  }
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::string uniqueDigits() {
  static std::atomic<unsigned> next{0};
  static const auto start = std::chrono::steady_clock::now().time_since_epoch().count() % 1000000;
  return std::to_string(1000000 + ::getpid()) + std::to_string(1000000 + start) + std::to_string(1000 + next++);
}

}  // namespace stitchkit::testing
