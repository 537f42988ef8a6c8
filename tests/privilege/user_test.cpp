#include "backend/privilege/user.h"

#include <catch2/catch.hpp>

namespace stitchkit {
namespace {

TEST_CASE("a user is found by name and by number") {
  const auto nobody = resolveUser("nobody");
  REQUIRE(nobody.has_value());
  REQUIRE(nobody->uid == 65534);
  REQUIRE(resolveUser("65534").value() == *nobody);
}

TEST_CASE("a number without an account never gets root's group") {
  const auto user = resolveUser("3000000123");
  REQUIRE(user.has_value());
  REQUIRE(user->uid == 3000000123);
  REQUIRE(user->gid == 3000000123);
}

TEST_CASE("root is refused under each of its names") {
  for (const char* name : {"0", "root", "00"}) {
    const auto user = resolveUser(name);
    REQUIRE_FALSE(user.has_value());
    REQUIRE(user.error().reason == "user-is-root");
  }
}

TEST_CASE("what is no user is refused") {
  // 4294967295 is what setresuid reads as "do not change"; the next would wrap around to root.
  for (const char* name :
       {"", "no-such-account", "-1", "4294967295", "4294967296", "18446744073709551616", " 0", "0x0"}) {
    const auto user = resolveUser(name);
    REQUIRE_FALSE(user.has_value());
    REQUIRE(user.error().reason == "user-unknown");
  }
}

}  // namespace
}  // namespace stitchkit
