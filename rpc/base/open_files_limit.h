// How many files this process may open.
#pragma once

#include <cstdint>
#include <optional>

namespace stitchkit {

/// Guests' connections to their gateways take descriptors; the usual soft limit of 1,024 is for programs that use
/// select(2), as guests may. Raises it as far as the hard limit permits and is of use.
/// @return the soft limit as it was, for guests; nullopt where even the raised one is below limits::kLeastOpenFiles.
std::optional<std::uint64_t> raiseOpenFilesLimit();

}  // namespace stitchkit
