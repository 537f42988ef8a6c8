#include "backend/diagnosis/cause.h"

#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

namespace stitchkit {
namespace {

// In the order of the causes.
constexpr std::pair<Cause, CauseText> kTexts[] = {
    {Cause::kBubblewrapMissing,
     {"bwrap-missing", "bubblewrap is not where it is looked for",
      "Install it (Debian, Ubuntu, Fedora: the package bubblewrap), or name its place with --bwrap PATH."}},
    {Cause::kBubblewrapNotExecutable,
     {"bwrap-not-executable", "bubblewrap may not be executed by the user that the sidecar runs as",
      "Give it mode 0755, see that every folder above it is searchable and that its file system is not mounted "
      "noexec, or name another with --bwrap PATH."}},
    {Cause::kBubblewrapSetuid,
     {"bwrap-setuid", "bubblewrap is installed setuid, and refuses in that mode what a sandbox needs",
      "Take the bit away (chmod u-s) and allow user namespaces to ordinary users, or name another bubblewrap "
      "with --bwrap PATH."}},
    {Cause::kBubblewrapCapabilities,
     {"bwrap-capabilities", "bubblewrap was started with capabilities, which it refuses",
      "Take file capabilities away from it (setcap -r), and start the sidecar without ambient ones "
      "(AmbientCapabilities= of systemd)."}},
    {Cause::kBubblewrapTooOld,
     {"bwrap-too-old", "bubblewrap is older than 0.8.0 and lacks what a sandbox needs (--disable-userns)",
      "Install bubblewrap 0.8.0 or later (Debian 12 has it), or name another with --bwrap PATH."}},
    {Cause::kBubblewrapUnknown,
     {"bwrap-unknown", "what --bwrap names does not behave like bubblewrap",
      "Name bubblewrap with --bwrap PATH; its --version says what a program is."}},
    {Cause::kUserNamespacesDisabled,
     {"user-namespaces-disabled", "user namespaces are switched off for ordinary users",
      "Set the sysctl kernel.unprivileged_userns_clone=1 where there is one, else boot a kernel that is built "
      "with CONFIG_USER_NS (and the other namespaces)."}},
    {Cause::kUserNamespacesLimited,
     {"user-namespaces-limited", "no further namespace may be made: a limit is 0 or used up",
      "Raise user.max_user_namespaces, and the other sysctls user.max_*_namespaces, on the machine; inside of "
      "another sandbox (bwrap --disable-userns) nothing helps but to start the sidecar outside of it."}},
    {Cause::kAppArmorRestrictsUserNamespaces,
     {"apparmor-restricts-user-namespaces",
      "AppArmor takes the rights from user namespaces of ordinary users (Ubuntu 23.10 and later)",
      "Give bubblewrap a profile, as root: a file /etc/apparmor.d/bwrap with the lines `abi <abi/4.0>,`, "
      "`include <tunables/global>` and `profile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }`, then "
      "`apparmor_parser -r /etc/apparmor.d/bwrap`. Or, for all programs, the sysctl "
      "kernel.apparmor_restrict_unprivileged_userns=0."}},
    {Cause::kContainerSeccomp,
     {"container-seccomp", "the container's system call filter refuses new namespaces",
      "Start the container with a filter that allows them to ordinary users (unshare, clone, clone3, mount, "
      "umount2, pivot_root, setns): `--security-opt seccomp=PROFILE.json`, or `seccomp=unconfined`."}},
    {Cause::kSeccompFilter,
     {"seccomp-filter", "a system call filter over the sidecar refuses new namespaces",
      "Start the sidecar without it: RestrictNamespaces=, SystemCallFilter= and the like of a systemd unit, or "
      "the sandbox that it is in."}},
    {Cause::kUserNamespacesRefused,
     {"user-namespaces-refused", "the kernel refuses user namespaces to this user",
      "See whether a security module (SELinux, AppArmor) refuses them (the kernel's log says so), and whether "
      "the sidecar is in a chroot, where nobody may make one."}},
    {Cause::kMountsRefused,
     {"mounts-refused", "file systems may not be mounted, not even in a namespace of its own",
      "A security module refuses it, that of a container as a rule: `--security-opt apparmor=unconfined` "
      "(Docker), `--security-opt label=disable` (SELinux), or a profile that allows mount and pivot_root."}},
    {Cause::kProcMasked,
     {"proc-masked", "no fresh /proc can be mounted: this one is partly covered or read-only",
      "Start the container with a whole /proc: `--security-opt systempaths=unconfined` (Docker), "
      "`--security-opt unmask=ALL` (Podman), `procMount: Unmasked` (Kubernetes)."}},
    {Cause::kKernelTooOld,
     {"kernel-too-old", "the kernel lacks system calls that a sandbox needs",
      "Run Linux 5.9 or later; in a container, a filter that knows its system calls."}},
    {Cause::kSeccompUnavailable,
     {"seccomp-unavailable", "no system call filter can be set for a guest",
      "Run a kernel with CONFIG_SECCOMP_FILTER, under a container profile that allows seccomp."}},
    {Cause::kStateDirectoryPath,
     {"state-directory-path", "the state directory's path is none of directories that are there or can be made",
      "Give an absolute path of directories, without `..`, with --state-dir: no file on it, no name over 255 bytes, "
      "and not below /proc."}},
    {Cause::kStateDirectoryNotSearchable,
     {"state-directory-not-searchable", "the state directory cannot be reached by the user of the sidecar",
      "Make every folder above it searchable (chmod o+x), or name another with --state-dir."}},
    {Cause::kStateDirectoryNotWritable,
     {"state-directory-not-writable", "the state directory cannot be written to",
      "Give it to the user that the sidecar runs as, on a file system that is mounted read-write, or name "
      "another with --state-dir."}},
    {Cause::kStateDirectoryFull,
     {"state-directory-full", "the file system of the state directory, or a quota, is full",
      "Make room, or name another directory with --state-dir."}},
    {Cause::kStateDirectoryNoexec,
     {"state-directory-noexec", "the launch helper below the state directory may not be executed",
      "Mount its file system without noexec, or name a directory on another with --state-dir."}},
    {Cause::kStateDirectoryFileSystem,
     {"state-directory-file-system",
      "the state directory's file system lacks something: file locks, hard links, renames, modes or sockets",
      "Name a directory on a local file system (ext4, xfs, btrfs, tmpfs) with --state-dir."}},
    {Cause::kStateDirectoryChanged,
     {"state-directory-changed", "a file or folder that the guest is lent is gone",
      "Something removed a workspace or the support files below the state directory. Stop the handle, attach "
      "again, and see what cleans up there."}},
    {Cause::kOpenFilesLimited,
     {"open-files-limited", "too few files may be open",
      "Raise the limit of open files (RLIMIT_NOFILE, ulimit -n) that the sidecar is started with."}},
    {Cause::kProcessesLimited,
     {"processes-limited", "no further process may be started",
      "Raise the limit of processes of the sidecar's user (RLIMIT_NPROC, ulimit -u, pids.max, TasksMax=)."}},
    {Cause::kStaysRoot,
     {"stays-root", "the sidecar stays root, with less isolation",
      "Leave --allow-root out: started by root the sidecar becomes --user (nobody)."}},
    {Cause::kNoCgroup,
     {"no-cgroup", "no control group that the sidecar may use has all controllers",
      "Start it as root, or in a delegated group (systemd-run --user --scope -p Delegate=yes; Delegate=yes of a "
      "unit), or name one with --cgroup. Without one, isolation is whole all the same, and `resources` that cannot "
      "be enforced are refused."}},
    {Cause::kSetUpTimeout,
     {"set-up-timeout", "it was not set up in time", "See how loaded the machine is, and try again."}},
    {Cause::kSetUpFailed,
     {"set-up-failed", "it could not be set up",
      "Check that bubblewrap works for this user and that user namespaces are enabled: stitchkit-sandbox "
      "doctor, started as the sidecar is, says more."}},
};

constexpr bool isInOrder() {
  for (std::size_t i = 0; i < std::size(kTexts); ++i) {
    if (static_cast<std::size_t>(kTexts[i].first) != i) {
      return false;
    }
  }
  return std::size(kTexts) == kCauses;
}
static_assert(isInOrder());

}  // namespace

const CauseText& textOf(Cause cause) {
  return kTexts[static_cast<std::size_t>(cause)].second;
}

Error unavailableBecause(std::string_view what, Cause cause) {
  const CauseText& text = textOf(cause);
  return Error(ErrorKind::kUnavailable, std::string(what) + ": " + text.message)
      .withHint(text.hint)
      .withReason(text.name);
}

}  // namespace stitchkit
