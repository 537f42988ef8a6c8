#include "backend/privilege/default_state_directory.h"

#include <catch2/catch.hpp>

#include <utility>
#include <vector>

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

TEST_CASE("what is said of the home is what is wrong with it") {
  const auto reachable = [](const std::string&) { return true; };
  for (const auto& [home, words] : std::vector<std::pair<std::optional<std::string>, std::string>>{
           {std::nullopt, "HOME is not set"}, {"", "HOME is not set"}, {"work/u", "HOME is not an absolute path"}}) {
    REQUIRE(chooseStateDirectory({std::nullopt, home, {}}).error().message.find(words) != std::string::npos);
    REQUIRE(chooseStateDirectory({std::nullopt, home, reachable})->note.find(words) != std::string::npos);
  }
}

}  // namespace
}  // namespace stitchkit
