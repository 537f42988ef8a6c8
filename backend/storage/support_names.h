// Names in `<state>/support/`: what lies there half made or half removed.
#pragma once

#include <string_view>

namespace stitchkit {

/// Being made, or a place for trials (backend/doctor); locked by who is at it.
inline constexpr std::string_view kSupportBuildPrefix = ".new-";
/// Being removed.
inline constexpr std::string_view kSupportRemovalPrefix = ".old-";

/// Whether it is nobody's when nobody has its lock.
constexpr bool isSupportUnderWay(std::string_view name) noexcept {
  return name.starts_with(kSupportBuildPrefix) || name.starts_with(kSupportRemovalPrefix);
}

}  // namespace stitchkit
