#include "tests/doctor/fake_root.h"

#include <filesystem>

namespace stitchkit::testing {

FakeRoot::FakeRoot() {
  write("/proc/self/ns/user", "");
  write("/proc/self/status", "Name:\tdoctor\nNoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n");
  write("/proc/self/cgroup", "0::/user.slice/user-1000.slice/session-1.scope\n");
  write("/proc/self/mountinfo",
        "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
        "23 22 0:30 / /proc/sys/fs/binfmt_misc rw - binfmt_misc binfmt_misc rw\n"
        "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  for (const char* kind : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}) {
    write(std::string("/proc/sys/user/max_") + kind + "_namespaces", "63259\n");
  }
}

void FakeRoot::write(std::string_view path, std::string_view text, unsigned mode) const {
  const std::string whole = folder_.path() + std::string(path);
  std::filesystem::create_directories(std::filesystem::path(whole).parent_path());
  std::filesystem::remove(whole);
  writeFile(whole, text, mode);
}

void FakeRoot::remove(std::string_view path) const {
  std::filesystem::remove_all(folder_.path() + std::string(path));
}

}  // namespace stitchkit::testing
