#include "backend/launch/launch_helper/embedded_helper.h"

extern "C" {
extern const char stitchkitLaunchHelperBegin[];
extern const char stitchkitLaunchHelperEnd[];
}

namespace stitchkit {

std::string_view launchHelperImage() noexcept {
  return {stitchkitLaunchHelperBegin, static_cast<std::size_t>(stitchkitLaunchHelperEnd - stitchkitLaunchHelperBegin)};
}

}  // namespace stitchkit
