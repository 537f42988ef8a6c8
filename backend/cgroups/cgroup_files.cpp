#include "backend/cgroups/cgroup_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <memory>

#include "rpc/base/unique_fd.h"

namespace stitchkit {

std::string readCgroupFile(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  for (ssize_t got = 1; file && got > 0;) {
    got = ::read(file.get(), buffer, sizeof buffer);
    text.append(buffer, got > 0 ? static_cast<std::size_t>(got) : 0);
  }
  return text;
}

int writeCgroupFile(const std::string& path, std::string_view text) noexcept {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) {
    return errno;
  }
  return ::write(file.get(), text.data(), text.size()) < 0 ? errno : 0;
}

std::uint64_t cgroupCounter(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.size() > name.size() && line.substr(0, name.size()) == name && line[name.size()] == ' ') {
      std::uint64_t number = 0;
      std::from_chars(line.data() + name.size() + 1, line.data() + line.size(), number);
      return number;
    }
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return 0;
}

bool removeCgroups(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), ::closedir);
  if (!stream) {
    return errno == ENOENT;
  }
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") {
      removeCgroups(directory + "/" + name);
    }
  }
  return ::rmdir(directory.c_str()) == 0 || errno == ENOENT;
}

}  // namespace stitchkit
