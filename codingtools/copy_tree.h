// Copying a tree that nobody else is changing: a template's data into a new session.
#pragma once

#include "rpc/base/error.h"

#include <stop_token>

namespace stitchkit {

/// Copies everything in directory `from` into directory `to` (empty, private to the caller), with the permission bits
/// of each file and directory. Contents are shared (reflink) or copied inside the kernel where the file systems can,
/// which is found out once a call; small files are read and written. Only files and directories are copied; anything
/// else is an internal error, since a template holds nothing else. No links are followed. Descriptors stay bounded
/// whatever the depth. kLimit with reason "storage" when the disk is full; kCancelled when `stop` is requested: what
/// is there by then is the caller's to remove.
Result<void> copyTree(int from, int to, const std::stop_token& stop = {});

}  // namespace stitchkit
