#include "backend/doctor/state_directory_facts.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "backend/diagnosis/set_up_cause.h"
#include "backend/doctor/trial_directory.h"
#include "codingtools/regular_file.h"
#include "gateway/gateway.h"

namespace stitchkit {
namespace {

// About what the files take that a first guest is lent.
constexpr std::size_t kTrialBytes = 4UL * 1024 * 1024;

int writeFile(int directory, const char* name) {
  const UniqueFd file(::openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  return file ? writeAll(file.get(), std::string(kTrialBytes, 'x')) : errno;
}

bool keepsModes(int directory, const char* name) {
  struct stat status {};
  return ::fchmodat(directory, name, 0755, 0) == 0 && ::fstatat(directory, name, &status, 0) == 0 &&
         (status.st_mode & 07777U) == 0755;
}

// Two descriptors of one file, of which only one may hold the lock.
bool locks(int directory, const char* name) {
  const UniqueFd first(::openat(directory, name, O_RDONLY | O_CLOEXEC));
  const UniqueFd second(::openat(directory, name, O_RDONLY | O_CLOEXEC));
  return first && second && ::flock(first.get(), LOCK_EX | LOCK_NB) == 0 &&
         ::flock(second.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::vector<std::string> findLacking(const TrialDirectory& trial, const char* name) {
  const int directory = trial.descriptor();
  std::vector<std::string> lacking;
  const auto need = [&lacking](const char* what, bool there) {
    if (!there) {
      lacking.emplace_back(what);
    }
  };
  need("modes", keepsModes(directory, name));
  need("file locks", locks(directory, name));
  need("hard links", ::linkat(directory, name, directory, "link", 0) == 0);
  need("symbolic links", ::symlinkat(name, directory, "symlink") == 0);
  need("renames that replace nothing", ::renameat2(directory, name, directory, "moved", RENAME_NOREPLACE) == 0);
  need("sockets", listenInDirectory(trial.path(), "socket").has_value());
  return lacking;
}

}  // namespace

StateDirectoryFacts tryStateDirectory(const std::string& path) {
  constexpr const char* kName = "file";
  StateDirectoryFacts facts;
  facts.path = path;
  const TrialDirectory trial(path);
  if (!trial.valid()) {
    facts.error = trial.error();
    facts.failed = "make a directory";
    facts.cause = causeOfStateDirectory(path, facts.error);
    facts.unsearchable = firstUnsearchable(path);
    return facts;
  }
  struct statvfs system {};
  if (::fstatvfs(trial.descriptor(), &system) == 0) {
    facts.noexec = (system.f_flag & ST_NOEXEC) != 0;
    facts.freeBytes = std::uint64_t{system.f_bavail} * system.f_frsize;
  }
  facts.error = writeFile(trial.descriptor(), kName);
  if (facts.error != 0) {
    facts.failed = "write a file";
    facts.cause = causeOfStateDirectory(path, facts.error);
    return facts;
  }
  facts.lacking = findLacking(trial, kName);
  return facts;
}

}  // namespace stitchkit
