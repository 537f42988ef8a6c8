#include "backend/diagnosis/set_up_cause.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace stitchkit {
namespace {

// The longest path that a sidecar has below its state directory, about.
constexpr std::size_t kPathBelow = 512;

// What bubblewrap 0.3 to 0.11 says; strerror's words, since it is started without a locale.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  [[nodiscard]] bool hold(std::string_view part) const { return text_.find(part) != std::string_view::npos; }
  [[nodiscard]] bool holdOne(std::initializer_list<std::string_view> parts) const {
    for (const std::string_view part : parts) {
      if (hold(part)) {
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] bool denied() const {
    return holdOne({"Permission denied", "Operation not permitted", "Read-only file system"});
  }

 private:
  std::string_view text_;
};

std::optional<Cause> ofProgram(const Words& words, const ProgramFacts& program) {
  if (words.holdOne({"Unknown option --", "unrecognized option '--"})) {
    return Cause::kBubblewrapTooOld;
  }
  if (words.hold("Unexpected capabilities")) {
    return Cause::kBubblewrapCapabilities;
  }
  if (words.holdOne({"setuid mode", "Unexpected setuid"}) || (program.setuid && words.hold("setuid"))) {
    return Cause::kBubblewrapSetuid;
  }
  return std::nullopt;
}

// Something that prints its version whatever it is asked for.
bool tellsOldVersion(std::string_view words) {
  while (!words.empty()) {
    const std::size_t end = words.find('\n');
    if (const auto version = parseBubblewrapVersion(words.substr(0, end)); version && *version < kOldestBubblewrap) {
      return true;
    }
    words = end == std::string_view::npos ? std::string_view() : words.substr(end + 1);
  }
  return false;
}

std::optional<Cause> ofNamespaces(const Words& words, const MachineFacts& machine) {
  // Two wordings: 0.4 has "creating new".
  if (words.holdOne({"No permissions to create new namespace", "No permissions to creating new namespace"})) {
    return causeOfRefusal(machine);
  }
  if (words.hold("does not support user namespaces")) {
    return Cause::kUserNamespacesDisabled;
  }
  if (words.hold("Creating new namespace failed")) {
    if (words.hold("Resource temporarily unavailable")) {
      return Cause::kProcessesLimited;
    }
    return words.holdOne({"ENOSPC", "No space left"}) ? Cause::kUserNamespacesLimited : causeOfRefusal(machine);
  }
  // The namespace was made and then had no rights: that is how AppArmor does it.
  if (words.holdOne({"setting up uid map", "setting up gid map", "loopback: Failed"}) && words.denied()) {
    return machine.appArmorRestricts ? Cause::kAppArmorRestrictsUserNamespaces : Cause::kUserNamespacesRefused;
  }
  return std::nullopt;
}

std::optional<Cause> ofMounts(const Words& words, const MachineFacts& machine) {
  if (words.hold("max_user_namespaces") && words.denied()) {
    return Cause::kProcMasked;
  }
  if (words.hold("Can't mount proc") && words.denied()) {
    return Cause::kProcMasked;
  }
  if (words.holdOne({"Can't read /proc", "Can't open /proc", "open /proc/"})) {
    return Cause::kProcMasked;  // hidden from bubblewrap itself
  }
  const bool mounting = words.holdOne({"Failed to make / slave", "Failed to mount tmpfs", "Can't mount tmpfs",
                                       "Can't bind mount", "Can't mount devpts", "pivot_root", "Can't remount"});
  if (mounting && words.denied()) {
    return machine.appArmorRestricts && machine.container.empty() ? Cause::kAppArmorRestrictsUserNamespaces
                                                                  : Cause::kMountsRefused;
  }
  return std::nullopt;
}

std::optional<Cause> ofFiles(const Words& words) {
  if (words.hold("execvp")) {
    return words.hold("Permission denied") ? Cause::kStateDirectoryNoexec : Cause::kStateDirectoryChanged;
  }
  if (words.holdOne({"Can't find source path", "Can't get type of source"})) {
    return words.hold("Permission denied") ? Cause::kStateDirectoryNotSearchable : Cause::kStateDirectoryChanged;
  }
  return std::nullopt;
}

}  // namespace

Cause causeOfSpawn(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return Cause::kBubblewrapMissing;
    case EACCES:
    case EPERM:
    case ELOOP:
      return Cause::kBubblewrapNotExecutable;
    case ENOEXEC:
    case ELIBBAD:
      return Cause::kBubblewrapUnknown;
    case EMFILE:
    case ENFILE:
      return Cause::kOpenFilesLimited;
    case EAGAIN:
      return Cause::kProcessesLimited;
    case ENOSYS:
      return Cause::kKernelTooOld;
    default:
      return Cause::kSetUpFailed;
  }
}

Cause causeOfSpawn(int error, const ProgramFacts& program) {
  const Cause cause = causeOfSpawn(error);
  return cause == Cause::kBubblewrapMissing && program.error == 0 ? Cause::kBubblewrapUnknown : cause;
}

std::optional<Cause> causeOfStorage(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
    case EROFS:
      return Cause::kStateDirectoryNotWritable;
    case ENOSPC:
    case EDQUOT:
      return Cause::kStateDirectoryFull;
    case EMFILE:
    case ENFILE:
      return Cause::kOpenFilesLimited;
    case ENOTSUP:
    case ENOSYS:
    case ENOLCK:
      return Cause::kStateDirectoryFileSystem;
    default:
      return std::nullopt;
  }
}

std::string firstUnsearchable(const std::string& path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    std::string folder = path.substr(0, slash);
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
      return "";
    }
    if (::faccessat(AT_FDCWD, folder.c_str(), X_OK, AT_EACCESS) != 0) {
      return folder;
    }
    if (slash == std::string::npos) {
      return "";
    }
  }
}

std::optional<Cause> causeOfStateDirectory(const std::string& path, int error) {
  struct stat status {};
  switch (error) {
    case EACCES:
      return firstUnsearchable(path).empty() ? Cause::kStateDirectoryNotWritable : Cause::kStateDirectoryNotSearchable;
    case ENOENT:
    case ENOTDIR:
    case EEXIST:
    case EINVAL:
    case ELOOP:
    case ENAMETOOLONG:
      // Where it is there, the error is about something in it.
      return path.size() < PATH_MAX - kPathBelow && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)
                 ? std::nullopt
                 : std::optional(Cause::kStateDirectoryPath);
    default:
      return causeOfStorage(error);
  }
}

Cause causeOfSetUp(std::string_view words, const MachineFacts& machine, const ProgramFacts& program) {
  const Words said(words);
  if (const auto cause = ofProgram(said, program)) {
    return *cause;
  }
  if (const auto cause = ofNamespaces(said, machine)) {
    return *cause;
  }
  if (const auto cause = ofMounts(said, machine)) {
    return *cause;
  }
  if (const auto cause = ofFiles(said)) {
    return *cause;
  }
  if (said.holdOne({"seccomp", "SECCOMP", "system call filter"})) {
    return Cause::kSeccompUnavailable;
  }
  if (said.hold("Resource temporarily unavailable")) {
    return Cause::kProcessesLimited;
  }
  if (tellsOldVersion(words)) {
    return Cause::kBubblewrapTooOld;
  }
  // Bubblewrap begins each line of its own with its name.
  return said.hold("bwrap: ") ? Cause::kSetUpFailed : Cause::kBubblewrapUnknown;
}

std::optional<Cause> forbiddenNamespaces(const MachineFacts& machine) {
  if (!machine.userNamespaces || machine.unprivilegedNamespaces == false) {
    return Cause::kUserNamespacesDisabled;
  }
  if (!machine.limitsAtZero.empty()) {
    return Cause::kUserNamespacesLimited;
  }
  return std::nullopt;
}

Cause causeOfRefusal(const MachineFacts& machine) {
  if (const auto forbidden = forbiddenNamespaces(machine)) {
    return *forbidden;
  }
  if (machine.filtered) {
    return machine.container.empty() ? Cause::kSeccompFilter : Cause::kContainerSeccomp;
  }
  return machine.appArmorRestricts ? Cause::kAppArmorRestrictsUserNamespaces : Cause::kUserNamespacesRefused;
}

}  // namespace stitchkit
