// From the errno of a file operation inside a workspace to what the caller is told.
#pragma once

#include "rpc/base/error.h"

#include <string_view>

namespace stitchkit {

/// kPath with `details.errno` for what the caller can put right (a missing file, a directory, a link, no permission);
/// kLimit with reason "storage" when the disk or a quota is full; an internal error for the rest. `operation` names
/// the failed call, for the log.
Error fileError(int errnoNumber, std::string_view operation);

/// Whether a symbolic link stood at some segment of the path, so that nothing was done. What a guest would get by
/// following it is not decided here: a caller that wants that asks a guest.
bool isSymlink(const Error& error);

/// kLimit for a file of `bytes` bytes where `limit` are allowed.
Error fileTooLarge(std::uint64_t bytes, std::uint64_t limit);

/// kCancelled.
Error fileWorkCancelled();

}  // namespace stitchkit
