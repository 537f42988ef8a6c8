// What a sidecar started by root does before anything else: give root up. A guest with the host's root uid could write
// below /proc/sys of the host (FACTS.md, 0), and a sidecar that is root is a prize.
#pragma once

#include "backend/cgroups/cgroup_delegation.h"
#include "backend/privilege/steward.h"
#include "backend/privilege/user.h"
#include "rpc/base/error.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace stitchkit {

struct PrivilegePlan {
  std::string user = "nobody";                ///< --user: a name, or the number of a uid
  bool allowRoot = false;                     ///< --allow-root
  std::optional<std::string> stateDirectory;  ///< --state-dir; without it the default is chosen
  CgroupRequest cgroups;                      ///< --cgroup; `owner` is set here
  /// Called when all that root makes is made, just before root is given up; not at all when it is not. For a child that
  /// is to keep its rights.
  std::function<void()> beforeDrop;
};

/// How the sidecar runs from now on.
struct Privilege {
  /// The state directory to use, absolute.
  std::string stateDirectory;
  /// For the log: what the operator may not expect. "" for nothing.
  std::string note;
  /// It is root and stays so: the launch profile must cover /proc/sys and its like.
  bool stayedRoot = false;
  /// The user it has become; none when it was not started by root, or stays root.
  std::optional<TargetUser> user;
  /// For a state directory that `initialize` names; dismiss it before the first guest.
  Steward steward;
  /// Where control groups may be made: by the user that it has become, in what root has handed over.
  std::shared_ptr<const CgroupDelegation> cgroups;
};

/// Settles it for the whole process. Call once, from main, before any thread exists. After an error the process must
/// end: it may have given up half of its rights.
///
/// Not root: only chooses the state directory. Root with allowRoot: the same, with `stayedRoot`. Root: resolves the
/// user, hands the state directory over, starts the steward, gives up groups, uid, gid and all capabilities, and proves
/// that none of it can be taken back.
///
/// Errors (kUnavailable): those of resolveUser, handOverStateDirectory and chooseStateDirectory, and
/// "root-not-given-up"; kInternal. A private detail may name paths: it is for the operator on stderr.
///
/// Not done on purpose: no_new_privs and the bounding set stay as they are, because a setuid bwrap needs both; the
/// launch profile takes every capability from the guest itself. The process stays undumpable, which setresuid(2) makes
/// it: other processes of a shared account such as nobody can then neither trace it nor read its memory and
/// environment. Its own /proc/self/fd keeps working (the kernel asks no permission within one thread group), and every
/// program that it executes is dumpable again.
Result<Privilege> settlePrivilege(const PrivilegePlan& plan);

}  // namespace stitchkit
