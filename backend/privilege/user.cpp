#include "backend/privilege/user.h"

#include "backend/diagnosis/cause.h"

#include <pwd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <vector>

namespace stitchkit {
namespace {

// The largest number is (uid_t)-1, which setresuid(2) and chown(2) read as "leave it as it is".
constexpr uid_t kNoUid = static_cast<uid_t>(-1);
constexpr std::size_t kAccountBytesMax = 1U << 20;

Error unknownUser(const std::string& nameOrUid) {
  return Error(ErrorKind::kUnavailable, "The user to run as does not exist")
      .withHint("Name an existing account, or the number of an ordinary user, with --user.")
      .withReason("user-unknown")
      .withPrivate("--user " + nameOrUid);
}

bool isNumber(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// `lookUp` is getpwnam_r or getpwuid_r with its key bound.
template <class LookUp>
std::optional<TargetUser> account(LookUp lookUp) {
  std::vector<char> buffer(1024);
  for (;;) {
    passwd entry{};
    passwd* found = nullptr;
    const int failure = lookUp(&entry, buffer.data(), buffer.size(), &found);
    if (failure == ERANGE && buffer.size() < kAccountBytesMax) {
      buffer.resize(buffer.size() * 2);
      continue;
    }
    if (failure != 0 || found == nullptr) {
      errno = failure;
      return std::nullopt;
    }
    return TargetUser{found->pw_uid, found->pw_gid};
  }
}

std::optional<TargetUser> byName(const std::string& name) {
  return account([&name](passwd* entry, char* buffer, std::size_t size, passwd** found) {
    return ::getpwnam_r(name.c_str(), entry, buffer, size, found);
  });
}

std::optional<TargetUser> byNumber(const std::string& digits) {
  uid_t uid = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), uid);
  if (failure != std::errc() || uid == kNoUid) {
    return std::nullopt;
  }
  const auto found = account([uid](passwd* entry, char* buffer, std::size_t size, passwd** result) {
    return ::getpwuid_r(uid, entry, buffer, size, result);
  });
  return found ? *found : TargetUser{uid, static_cast<gid_t>(uid)};
}

}  // namespace

Result<TargetUser> resolveUser(const std::string& nameOrUid) {
  errno = 0;
  const auto user = isNumber(nameOrUid) ? byNumber(nameOrUid) : byName(nameOrUid);
  if (!user && (errno == EMFILE || errno == ENFILE)) {
    return unavailableBecause("The user to run as could not be looked up", Cause::kOpenFilesLimited)
        .withPrivate("--user " + nameOrUid);
  }
  if (!user) {
    return unknownUser(nameOrUid);
  }
  if (user->uid == 0 || user->gid == 0) {
    return Error(ErrorKind::kUnavailable, "The user to run as is root or in root's group")
        .withHint("Name an ordinary user with --user; --allow-root is the way to stay root.")
        .withReason("user-is-root")
        .withPrivate("--user " + nameOrUid);
  }
  return *user;
}

}  // namespace stitchkit
