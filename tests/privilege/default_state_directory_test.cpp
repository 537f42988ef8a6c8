#include "backend/privilege/default_state_directory.h"

#include <catch2/catch.hpp>

namespace stitchkit {
namespace {

std::string chosen(const StateDirectoryPlaces& places) {
  const auto choice = chooseStateDirectory(places);
  return choice ? choice->path : "error " + choice.error().reason;
}

TEST_CASE("the XDG variable goes before the home") {
  REQUIRE(chosen({"/x", "/home/u", {}}) == "/x/stitchkit-sandbox");
  REQUIRE(chosen({std::nullopt, "/home/u", {}}) == "/home/u/.local/state/stitchkit-sandbox");
}

TEST_CASE("empty and relative variables count as not set") {
  REQUIRE(chosen({"", "/home/u", {}}) == "/home/u/.local/state/stitchkit-sandbox");
  REQUIRE(chosen({"state", "/home/u", {}}) == "/home/u/.local/state/stitchkit-sandbox");
  REQUIRE(chosen({"state", "", {}}) == "error state-directory-unknown");
  REQUIRE(chosen({std::nullopt, std::nullopt, {}}) == "error state-directory-unknown");
}

TEST_CASE("a sidecar that gives root up looks for a place that it can reach") {
  const auto reachable = [](const std::string& path) { return path.starts_with("/srv/"); };
  const auto usual = chooseStateDirectory({"/srv/x", "/root", reachable});
  REQUIRE(usual->path == "/srv/x/stitchkit-sandbox");
  REQUIRE(usual->note.empty());
  const auto fallback = chooseStateDirectory({std::nullopt, "/root", reachable});
  REQUIRE(fallback->path == "/var/lib/stitchkit-sandbox");
  REQUIRE(fallback->note.find("/root/.local/state/stitchkit-sandbox") != std::string::npos);
  const auto homeless = chooseStateDirectory({std::nullopt, std::nullopt, reachable});
  REQUIRE(homeless->path == "/var/lib/stitchkit-sandbox");
  REQUIRE_FALSE(homeless->note.empty());
}

}  // namespace
}  // namespace stitchkit
