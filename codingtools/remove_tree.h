// Removing directory trees that others may be changing meanwhile.
#pragma once

#include "rpc/base/error.h"

#include <stop_token>

namespace stitchkit {

/// Removes the entry `name` (one segment) of `parent` and everything below it. A missing entry is fine; a symbolic
/// link is removed, never followed. Directories of ours without permission bits get them first. Any depth, any number
/// of entries: a bounded number of descriptors, no recursion. Entries that vanish, appear, move or turn into links
/// meanwhile do no harm; a directory that never stops filling up ends in kPath ENOTEMPTY. Stops at the first entry that
/// cannot be removed. kCancelled when `stop` is requested: what is removed by then stays removed.
Result<void> removeEntry(int parent, const char* name, const std::stop_token& stop = {});

/// The same for everything in `directory` (any descriptor of a directory, O_PATH too), which itself stays.
Result<void> removeEntriesOf(int directory, const std::stop_token& stop = {});

}  // namespace stitchkit
