#include "backend/launch/launch_helper/embedded_helper.h"

extern "C" {
extern const char stitchkitLaunchHelperBegin[];
extern const char stitchkitLaunchHelperEnd[];
}

namespace stitchkit {

std::string_view launchHelperImage() noexcept {
  // cppcheck-suppress comparePointers ; two labels of one section
  return {stitchkitLaunchHelperBegin, static_cast<std::size_t>(stitchkitLaunchHelperEnd - stitchkitLaunchHelperBegin)};
}

}  // namespace stitchkit
