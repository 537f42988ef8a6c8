#include "bench/unprivileged_home.h"

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace stitchkit::bench {

namespace fs = std::filesystem;

namespace {

constexpr uid_t kNobody = 65534;

void check(int result, const char* what) {
  if (result != 0) {
    throw std::system_error(errno, std::generic_category(), what);
  }
}

// An ordinary user gets at the files and, in the end, removes the folders.
void lend(const fs::path& copy) {
  check(chmod(copy.c_str(), 0755), "chmod");
  if (geteuid() == 0) {
    check(chown(copy.c_str(), kNobody, kNobody), "chown");
  }
}

}  // namespace

UnprivilegedHome::UnprivilegedHome(const std::vector<fs::path>& programs) {
  std::string pattern = fs::temp_directory_path() / "sandbox-bench.XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "mkdtemp");
  }
  path_ = pattern;
  // Bubblewrap resolves the workspace's path with the guest's user: each folder above has to be searchable.
  check(chmod(path_.c_str(), 0711), "chmod");
  for (const fs::path& program : programs) {
    const fs::path copy = path_ / program.filename();
    fs::copy(program, copy, fs::copy_options::recursive);
    lend(copy);
    if (fs::is_directory(copy)) {
      for (const fs::directory_entry& entry : fs::recursive_directory_iterator(copy)) {
        lend(entry.path());
      }
    }
  }
  CgroupRequest cgroups;
  if (geteuid() == 0) {
    cgroups.owner = CgroupOwner{kNobody, kNobody};
  }
  cgroups_ = delegateCgroups(cgroups);
  if (geteuid() == 0) {
    check(chown(path_.c_str(), kNobody, kNobody), "chown");
    check(setgroups(0, nullptr), "setgroups");
    check(setresgid(kNobody, kNobody, kNobody), "setresgid");
    check(setresuid(kNobody, kNobody, kNobody), "setresuid");
  }
}

UnprivilegedHome::~UnprivilegedHome() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace stitchkit::bench
