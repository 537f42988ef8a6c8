// The static launch helper's program file, as it lies inside this binary.
#pragma once

#include <string_view>

namespace stitchkit {

/// The bytes of the ELF file. Valid for the life of the process.
std::string_view launchHelperImage() noexcept;

}  // namespace stitchkit
