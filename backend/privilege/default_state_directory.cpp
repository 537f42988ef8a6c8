#include "backend/privilege/default_state_directory.h"

namespace stitchkit {
namespace {

constexpr const char* kName = "/stitchkit-sandbox";
constexpr const char* kSystemWide = "/var/lib/stitchkit-sandbox";

std::optional<std::string> usualPlace(const StateDirectoryPlaces& places) {
  if (places.xdgStateHome && places.xdgStateHome->starts_with('/')) {
    return *places.xdgStateHome + kName;
  }
  if (places.home && places.home->starts_with('/')) {
    return *places.home + "/.local/state" + kName;
  }
  return std::nullopt;
}

const char* whyNoHome(const StateDirectoryPlaces& places) {
  return places.home && !places.home->empty() ? "HOME is not an absolute path" : "HOME is not set";
}

}  // namespace

Result<StateDirectoryChoice> chooseStateDirectory(const StateDirectoryPlaces& places) {
  const auto usual = usualPlace(places);
  if (!places.reachable) {
    if (!usual) {
      return Error(ErrorKind::kUnavailable,
                   std::string("There is no place for the state directory: ") + whyNoHome(places))
          .withHint("Name one with --state-dir.")
          .withReason("state-directory-unknown");
    }
    return StateDirectoryChoice{*usual, ""};
  }
  if (usual && places.reachable(*usual)) {
    return StateDirectoryChoice{*usual, ""};
  }
  const std::string why =
      usual ? *usual + " cannot be reached by the user that the sidecar runs as" : whyNoHome(places);
  return StateDirectoryChoice{kSystemWide, why + ": state is kept in " + kSystemWide};
}

}  // namespace stitchkit
