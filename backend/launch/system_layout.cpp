#include "backend/launch/system_layout.h"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <string_view>

namespace stitchkit {
namespace {

constexpr const char* kSystemDirectories[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};

// Switches of the kernel and of devices; those that the machine has are bound read-only over themselves.
constexpr const char* kProcCovers[] = {"/proc/sysrq-trigger", "/proc/irq",  "/proc/bus",    "/proc/fs",
                                       "/proc/acpi",          "/proc/scsi", "/proc/asound", "/proc/mtrr"};

// A link that leads anywhere but into /usr would dangle in the guest; bwrap binds what it leads to instead.
std::string linkIntoUsr(const char* path) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(path, target, sizeof target);
  if (size <= 0 || static_cast<std::size_t>(size) == sizeof target) {
    return {};
  }
  char resolved[PATH_MAX];
  if (::realpath(path, resolved) == nullptr || !std::string_view(resolved).starts_with("/usr/")) {
    return {};
  }
  return {target, static_cast<std::size_t>(size)};
}

}  // namespace

SystemLayout probeSystemLayout() {
  SystemLayout layout;
  struct stat status {};
  for (const char* path : kSystemDirectories) {
    if (::stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
      layout.directories.push_back({path, linkIntoUsr(path)});
    }
  }
  for (const char* path : kProcCovers) {
    if (::stat(path, &status) == 0) {
      layout.procCovers.emplace_back(path);
    }
  }
  return layout;
}

}  // namespace stitchkit
