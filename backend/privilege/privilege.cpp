#include "backend/privilege/privilege.h"

#include "backend/diagnosis/cause.h"
#include "backend/privilege/default_state_directory.h"
#include "backend/privilege/hand_over.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define SANDBOX_LEAK_CHECKER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANDBOX_LEAK_CHECKER 1
#endif
#endif

namespace stitchkit {
namespace {

using CapabilitySets = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

Error notGivenUp(std::string_view step, int failure) {
  return Error(ErrorKind::kUnavailable, "Root could not be given up")
      .withHint("Start the sidecar as an ordinary user, or with --allow-root.")
      .withReason("root-not-given-up")
      .withPrivate(std::string(step) + ": " + errnoName(failure));
}

std::optional<std::string> variable(const char* name) {
  const char* value = ::getenv(name);
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

// `user`: who must reach it; none when root is not given up.
Result<StateDirectoryChoice> placeFor(const PrivilegePlan& plan, const std::optional<TargetUser>& user) {
  if (plan.stateDirectory) {
    std::error_code failure;
    auto whole = std::filesystem::absolute(*plan.stateDirectory, failure);
    if (failure || plan.stateDirectory->empty()) {
      return unavailableBecause("The state directory could not be used", Cause::kStateDirectoryPath);
    }
    return StateDirectoryChoice{whole.string(), ""};
  }
  StateDirectoryPlaces places{variable("XDG_STATE_HOME"), variable("HOME"), {}};
  if (user) {
    places.reachable = [&user](const std::string& path) { return checkReachable(path, *user).has_value(); };
  }
  return chooseStateDirectory(places);
}

Result<void> dropIdentity(const TargetUser& user) {
  if (::setresgid(user.gid, user.gid, user.gid) != 0) {
    return notGivenUp("setresgid", errno);
  }
  if (::setresuid(user.uid, user.uid, user.uid) != 0) {
    return notGivenUp("setresuid", errno);
  }
  // The kernel clears permitted and effective with the last root uid, unless securebits say otherwise; inheritable and
  // ambient it may leave.
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) {
    return notGivenUp("ambient capabilities", errno);
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const CapabilitySets none{};
  if (::syscall(SYS_capset, &header, none.data()) != 0) {
    return notGivenUp("capset", errno);
  }
  return {};
}

bool isOnly(const TargetUser& user) {
  uid_t uids[3] = {};
  gid_t gids[3] = {};
  if (::getresuid(&uids[0], &uids[1], &uids[2]) != 0 || ::getresgid(&gids[0], &gids[1], &gids[2]) != 0) {
    return false;
  }
  bool only = ::getgroups(0, nullptr) == 0;
  for (int i = 0; i < 3; ++i) {
    only = only && uids[i] == user.uid && gids[i] == user.gid;
  }
  return only;
}

// That it is gone for good: the calls that would bring it back are tried.
Result<void> proveDropped(const TargetUser& user) {
  if (!isOnly(user)) {
    return notGivenUp("ids", EPERM);
  }
  if (::setuid(0) == 0 || ::seteuid(0) == 0 || ::setgid(0) == 0 || ::setegid(0) == 0) {
    return notGivenUp("root came back", EPERM);
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  CapabilitySets left{};
  if (::syscall(SYS_capget, &header, left.data()) != 0) {
    return notGivenUp("capget", errno);
  }
  for (const auto& set : left) {
    if (set.effective != 0 || set.permitted != 0 || set.inheritable != 0) {
      return notGivenUp("capabilities left", EPERM);
    }
  }
  return {};
}

Result<Privilege> giveUpRoot(const PrivilegePlan& plan) {
  const auto user = resolveUser(plan.user);
  if (!user) {
    return user.error();
  }
  // First: what follows asks the file system as the user, and the steward keeps what there is now.
  if (::setgroups(0, nullptr) != 0) {
    return notGivenUp("setgroups", errno);
  }
  auto place = placeFor(plan, *user);
  if (!place) {
    return place.error();
  }
  if (auto given = handOverStateDirectory(place->path, *user); !given) {
    return given.error();
  }
  CgroupRequest cgroups = plan.cgroups;
  cgroups.owner = CgroupOwner{user->uid, user->gid};
  auto delegation = std::make_shared<const CgroupDelegation>(delegateCgroups(cgroups));
  if (plan.beforeDrop) {
    plan.beforeDrop();
  }
  auto steward = Steward::start(*user);
  if (!steward) {
    return steward.error();
  }
  if (auto dropped = dropIdentity(*user); !dropped) {
    return dropped.error();
  }
  if (auto proven = proveDropped(*user); !proven) {
    return proven.error();
  }
#ifdef SANDBOX_LEAK_CHECKER
  // LeakSanitizer traces the process at its end, which an undumpable one refuses.
  ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
#endif
  return Privilege{std::move(place->path), std::move(place->note), false, *user,
                   std::move(*steward),    std::move(delegation)};
}

}  // namespace

Result<Privilege> settlePrivilege(const PrivilegePlan& plan) {
  const bool isRoot = ::geteuid() == 0;
  if (isRoot && !plan.allowRoot) {
    return giveUpRoot(plan);
  }
  auto place = placeFor(plan, std::nullopt);
  if (!place) {
    return place.error();
  }
  return Privilege{std::move(place->path),
                   std::move(place->note),
                   isRoot,
                   std::nullopt,
                   Steward(),
                   std::make_shared<const CgroupDelegation>(delegateCgroups(plan.cgroups))};
}

}  // namespace stitchkit
