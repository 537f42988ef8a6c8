#include "backend/process_use.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <memory>
#include <string_view>

#include "rpc/base/unique_fd.h"

namespace stitchkit {
namespace {

std::uint64_t numberBehind(std::string_view status, std::string_view name) {
  const std::size_t at = status.find(name);
  if (at == std::string_view::npos) {
    return 0;
  }
  const std::string_view rest = status.substr(at + name.size());
  const std::size_t digit = rest.find_first_of("0123456789");
  std::uint64_t number = 0;
  if (digit != std::string_view::npos) {
    std::from_chars(rest.data() + digit, rest.data() + rest.size(), number);
  }
  return number;
}

std::uint64_t countOpenFiles() {
  // The number itself since Linux 6.2; before, 0.
  struct stat folder {};
  if (::stat("/proc/self/fd", &folder) == 0 && folder.st_size > 0) {
    return static_cast<std::uint64_t>(folder.st_size);
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir("/proc/self/fd"), ::closedir);
  if (!entries) {
    return 0;
  }
  // Without `.`, `..` and the directory that is being read.
  std::int64_t count = -3;
  while (::readdir(entries.get()) != nullptr) {
    ++count;
  }
  return static_cast<std::uint64_t>(count);
}

}  // namespace

ProcessUse processUse() {
  ProcessUse use;
  const UniqueFd file(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  std::array<char, 8192> text;
  const ssize_t size = file ? ::read(file.get(), text.data(), text.size()) : -1;
  if (size > 0) {
    const std::string_view status(text.data(), static_cast<std::size_t>(size));
    use.residentBytes = numberBehind(status, "\nVmRSS:") * 1024;
    use.peakBytes = numberBehind(status, "\nVmHWM:") * 1024;
    use.threads = numberBehind(status, "\nThreads:");
  }
  use.openFiles = countOpenFiles();
  rlimit limit{};
  use.openFilesLimit = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
  return use;
}

}  // namespace stitchkit
